import { DTypeError, withoutAutocast } from "@halfstep/autocast";
import { type Generator, Module, parameter, requireArguments, uniform } from "@halfstep/nn";
import {
  type CrfDecoded,
  type CrfWeights,
  crfDecode,
  crfLoss,
  mean,
  type Runtime,
  ShapeError,
  sum,
  type Tensor,
  type Variable,
} from "@halfstep/tensor/functional";

/** The mask of sequences. */
export interface MaskOptions {
  /** uint32 [batch, length]: 1 for tokens, 0 for the padding behind them. The first of a sequence is a token. Default: ones. */
  readonly mask?: Tensor;
}

/** Options of the loss of a conditional random field. */
export interface CRFLossOptions extends MaskOptions {
  /** Over the sequences of a batch. Default "mean". */
  readonly reduction?: "mean" | "sum" | "none";
}

/** The best tags, and their score; behind the end of a sequence, its last tag again. */
export type DecodedTags = CrfDecoded;

/**
 * Linear-chain conditional random field (Lafferty et al. 2001) over tags, with pytorch-crf's names. Everything is computed in
 * log space and in float32, whatever the dtype of the emissions and the precision around it: scores of a sequence are sums over
 * its length, which exceed the precision of 16 bits.
 */
export class CRF extends Module {
  readonly numTags: number;
  /** [tags] */
  readonly startTransitions: Variable;
  /** [tags] */
  readonly endTransitions: Variable;
  /** [from, to] */
  readonly transitions: Variable;

  /** @param numTags up to 512 */
  constructor(runtime: Runtime, numTags: number, options: { generator: Generator }) {
    super();
    requireArguments("new CRF(runtime, numTags, { generator })", runtime, numTags, options);
    const { generator } = options;
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
   * @param tags uint32 [batch, length]; tags under padding may have any value
   * @returns float32: a scalar, or [batch] where the reduction is "none"
   */
  forward(
    emissions: Tensor,
    tags: Tensor,
    { mask, reduction = "mean" }: CRFLossOptions = {},
  ): Tensor {
    this.#check(emissions, mask);
    if (!["mean", "sum", "none"].includes(reduction))
      throw new RangeError(
        `${this.label}: reduction is ${JSON.stringify(reduction)}; pass "mean", "sum" or "none"`,
      );
    if (tags.dtype !== "uint32")
      throw new DTypeError(`${this.label}: tags are ${tags.dtype}; make them from a Uint32Array`);
    const places = emissions.shape.slice(0, 2);
    if (tags.shape.join() !== places.join())
      throw new ShapeError(`${this.label} needs tags [${places}], not [${tags.shape}]`);
    return withoutAutocast(() => {
      const losses = crfLoss(emissions, tags, this.#weights, { mask });
      if (reduction === "none") return losses;
      return reduction === "sum" ? sum(losses) : mean(losses);
    });
  }

  /**
   * The most probable sequence of tags, by Viterbi's algorithm.
   *
   * @param emissions [batch, length, tags]
   */
  decode(emissions: Tensor, { mask }: MaskOptions = {}): DecodedTags {
    this.#check(emissions, mask);
    return withoutAutocast(() => crfDecode(emissions, this.#weights, { mask }));
  }

  get #weights(): CrfWeights {
    return {
      start: this.startTransitions,
      end: this.endTransitions,
      transitions: this.transitions,
    };
  }

  #check(emissions: Tensor, mask: Tensor | undefined): void {
    const { numTags } = this;
    const [batch, length = 0] = emissions.shape;
    if (emissions.rank !== 3 || length < 1 || emissions.shape[2] !== numTags)
      throw new ShapeError(
        `${this.label} needs emissions [batch, length, ${numTags}], not [${emissions.shape}]`,
      );
    if (mask && (mask.dtype !== "uint32" || mask.shape.join() !== `${batch},${length}`))
      throw new ShapeError(
        `${this.label} needs a uint32 mask [${batch},${length}], not ${mask.dtype} [${mask.shape}]`,
      );
  }
}
