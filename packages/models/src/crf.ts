import { DTypeError, withoutAutocast } from "@halfstep/autocast";
import { type Generator, Module, parameter, uniform } from "@halfstep/nn";
import {
  amax,
  argmax,
  castTo,
  cat,
  embedding,
  keepWhere,
  logicalAnd,
  logicalNot,
  logsumexp,
  maskedFill,
  noGrad,
  pad,
  type Runtime,
  ShapeError,
  type Tensor,
  type Variable,
  where,
} from "@halfstep/tensor";

export interface MaskOptions {
  /** uint32 [batch, length]: 1 for tokens, 0 for the padding behind them. The first of a sequence is a token. Default: ones. */
  readonly mask?: Tensor;
}

export interface CRFLossOptions extends MaskOptions {
  /** Over the sequences of a batch. Default "mean". */
  readonly reduction?: "mean" | "sum" | "none";
}

export interface DecodedTags {
  /** uint32 [batch, length]: the best tags; behind the end of a sequence, its last one again. */
  readonly tags: Tensor;
  /** float32 [batch]: the best tags' score, which is their unnormalised log-probability. */
  readonly scores: Tensor;
}

/**
 * Linear-chain conditional random field (Lafferty et al. 2001) over tags, with pytorch-crf's names. Everything is computed in
 * log space and in float32, whatever the dtype of the emissions and the precision around it: scores of a sequence are sums over
 * its length, which 16 bits do not hold.
 */
export class CRF extends Module {
  readonly numTags: number;
  /** [tags] */
  readonly startTransitions: Variable;
  /** [tags] */
  readonly endTransitions: Variable;
  /** [from, to] */
  readonly transitions: Variable;

  constructor(runtime: Runtime, numTags: number, { generator }: { generator: Generator }) {
    super();
    this.numTags = numTags;
    const make = (shape: readonly number[], name: string): Variable =>
      parameter(runtime, uniform(shape, generator, -0.1, 0.1), shape, name);
    this.startTransitions = make([numTags], "startTransitions");
    this.endTransitions = make([numTags], "endTransitions");
    this.transitions = make([numTags, numTags], "transitions");
  }

  override get keepsFloat32(): boolean {
    return true;
  }

  /**
   * Negative log-likelihood of the tags.
   *
   * @param emissions [batch, length, tags]
   * @param tags uint32 [batch, length]; those under padding may be anything
   * @returns float32: a scalar, or [batch] where the reduction is "none"
   */
  forward(
    emissions: Tensor,
    tags: Tensor,
    { mask, reduction = "mean" }: CRFLossOptions = {},
  ): Tensor {
    if (tags.dtype !== "uint32")
      throw new DTypeError(`${this.label}: tags are ${tags.dtype}; make them from a Uint32Array`);
    return withoutAutocast(() => {
      const given = this.#chain(emissions, mask);
      // The same for all tags of a place, it cancels out, and leaves smaller sums with more digits behind the point.
      const largest = noGrad(() => amax(given.emissions, -1, true));
      const chain = { ...given, emissions: given.emissions.sub(largest) };
      const losses = this.#logPartition(chain).sub(this.#score(chain, tags));
      if (reduction === "none") return losses;
      return reduction === "sum" ? losses.sum() : losses.mean();
    });
  }

  /**
   * The tags of highest probability together, by Viterbi's algorithm.
   *
   * @param emissions [batch, length, tags]
   */
  decode(emissions: Tensor, { mask }: MaskOptions = {}): DecodedTags {
    return noGrad(() => withoutAutocast(() => this.#viterbi(this.#chain(emissions, mask))));
  }

  #chain(given: Tensor, mask: Tensor | undefined): Chain {
    const { numTags } = this;
    const [batch, length] = given.shape as [number, number];
    if (given.rank !== 3 || length < 1 || given.shape[2] !== numTags)
      throw new ShapeError(
        `${this.label} needs emissions [batch, length, ${numTags}], not [${given.shape}]`,
      );
    if (mask && (mask.dtype !== "uint32" || mask.shape.join() !== `${batch},${length}`))
      throw new ShapeError(
        `${this.label} needs a uint32 mask [${batch},${length}], not ${mask.dtype} [${mask.shape}]`,
      );
    const wide = castTo(given, "float32");
    // Whatever lies under the padding, infinities included, must not reach a gradient.
    const emissions = mask ? keepWhere([wide, mask.reshape([batch, length, 1])], null) : wide;
    const [start, end, transitions] = [
      this.startTransitions,
      this.endTransitions,
      this.transitions,
    ].map((variable) => castTo(variable, "float32")) as [Tensor, Tensor, Tensor];
    const incoming = transitions.permute([1, 0]);
    return { emissions, mask, start, end, transitions, incoming, batch, length, numTags };
  }

  /** log Σ exp score over all tags of each sequence, [batch]: the forward algorithm. */
  #logPartition({ emissions, mask, start, end, incoming, batch, length, numTags }: Chain): Tensor {
    const [first, ...others] = placesOf(emissions) as [Tensor, ...Tensor[]];
    const present = mask ? placesOf(mask.reshape([batch, length, 1])) : [];
    let alpha = start.add(first);
    for (const [i, emission] of others.entries()) {
      const paths = alpha.reshape([batch, 1, numTags]).add(incoming);
      const next = logsumexp(paths, { axes: -1 }).add(emission);
      const isPresent = present[i + 1];
      alpha = isPresent ? where([isPresent, next, alpha], null) : next;
    }
    return logsumexp(alpha.add(end), { axes: -1 });
  }

  /** The score of given tags, [batch]. */
  #score(chain: Chain, tags: Tensor): Tensor {
    const { emissions, mask, start, end, transitions, batch, length, numTags } = chain;
    if (tags.shape.join() !== `${batch},${length}`)
      throw new ShapeError(`${this.label} needs tags [${batch},${length}], not [${tags.shape}]`);
    const among = (scores: Tensor, names: Tensor): Tensor =>
      scores.gather(2, names.reshape([...names.shape, 1])).reshape(names.shape);
    const ofTag = (scores: Tensor, names: Tensor): Tensor =>
      embedding(names, scores.reshape([numTags, 1])).reshape(names.shape);
    const inside = (scores: Tensor, places?: Tensor): Tensor =>
      (places ? keepWhere([scores, places], null) : scores).sum(1);
    const emitted = inside(among(emissions, tags), mask);
    const started = ofTag(start, tags.select(1, 0));
    const following = mask?.narrow(1, 1, length - 1);
    const isLast =
      mask && following
        ? logicalAnd(
            [
              mask,
              logicalNot(
                [
                  pad(following, [
                    [0, 0],
                    [0, 1],
                  ]),
                ],
                null,
              ),
            ],
            null,
          )
        : undefined;
    const ended = isLast
      ? inside(ofTag(end, tags), isLast)
      : ofTag(end, tags.select(1, length - 1));
    const score = emitted.add(started).add(ended);
    if (length === 1) return score;
    const [from, to] = [tags.narrow(1, 0, length - 1), tags.narrow(1, 1, length - 1)];
    return score.add(inside(among(embedding(from, transitions), to), following));
  }

  #viterbi({ emissions, mask, start, end, incoming, batch, length, numTags }: Chain): DecodedTags {
    const { runtime } = emissions;
    const [first, ...others] = placesOf(emissions) as [Tensor, ...Tensor[]];
    const present = mask ? placesOf(mask.reshape([batch, length, 1])) : [];
    const isOther = runtime.tensor(
      Uint32Array.from({ length: numTags ** 2 }, (_, i) => (i % (numTags + 1) === 0 ? 0 : 1)),
      [numTags, numTags],
    );
    const pointers: Tensor[] = [];
    let best = start.add(first);
    for (const [i, emission] of others.entries()) {
      const before = best.reshape([batch, 1, numTags]);
      const isPresent = present[i + 1]?.reshape([batch, 1, 1]);
      const moved = before.add(incoming);
      // Under padding every tag comes from itself.
      const paths = isPresent
        ? where([isPresent, moved, maskedFill(before, isOther, Number.NEGATIVE_INFINITY)], null)
        : moved;
      pointers.push(argmax([paths], null));
      best = amax(paths, -1).add(emission);
    }
    const final = best.add(end);
    let tag = argmax([final], null).reshape([batch, 1]);
    const tags = [tag];
    for (const from of pointers.reverse()) {
      tag = from.gather(1, tag);
      tags.unshift(tag);
    }
    return { tags: cat(tags, 1), scores: amax(final, -1) };
  }
}

interface Chain {
  /** float32 [batch, length, tags], zeros under padding. */
  readonly emissions: Tensor;
  readonly mask: Tensor | undefined;
  readonly start: Tensor;
  readonly end: Tensor;
  readonly transitions: Tensor;
  /** [to, from] */
  readonly incoming: Tensor;
  readonly batch: number;
  readonly length: number;
  readonly numTags: number;
}

/** [batch, length, n] as [batch, n] for each place. */
const placesOf = (x: Tensor): readonly Tensor[] =>
  Array.from({ length: x.shape[1] as number }, (_, place) => x.select(1, place));
