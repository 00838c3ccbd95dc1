import type { Binding, Kernel, KernelBinding, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";
import {
  byParts,
  type CrfOperands,
  type CrfParts,
  type CrfScalars,
  type CrfShape,
  chainMain,
  chainWorkgroups,
  crfFunctions,
  crfScalars,
  given,
  half,
  highestFunction,
  highestOf,
  logSumExp,
  logSumExpCode,
  maskBinding,
  named,
  partsOf,
  placeArrays,
  requireCrf,
  scalarsOf,
  single,
  tagsBinding,
  variantOf,
} from "./shape.js";

export interface CrfLossBackwardOperands<B> extends CrfOperands<B> {
  readonly tags?: Binding<B> | undefined;
  /** What {@link crfLoss} left behind. */
  readonly alphas: Binding<B>;
  /** [batch] */
  readonly lossGradient: Binding<B>;
  /** [batch, length, tags]; zeros where the mask is 0. */
  readonly emissionGradient: Binding<B>;
  /** float32 [tags] */
  readonly startGradient: Binding<B>;
  /** float32 [tags] */
  readonly endGradient: Binding<B>;
  /** float32 [from, to] */
  readonly transitionGradient: Binding<B>;
}

/**
 * The gradients of {@link crfLoss}: the probabilities of tags and of pairs of tags, minus one for those that are given, in four
 * launches. What a place's tag passes on to the place before is divided by how the forward algorithm came to it, which are
 * probabilities: nothing overflows, and no logarithm is taken. Sums over the batch have one order.
 */
export function crfLossBackward<B>(
  target: LaunchTarget<B>,
  operands: CrfLossBackwardOperands<B>,
  shape: CrfShape,
): void {
  requireCrf("crfLossBackward", operands, shape);
  const { emissions, end, transitions, tags, mask, alphas, lossGradient } = operands;
  const { emissionGradient, startGradient, endGradient, transitionGradient } = operands;
  const { batch, length, numTags } = shape;
  const elements = batch * length * numTags;
  requireLengths(
    "crfLossBackward",
    {
      tags,
      alphas,
      lossGradient,
      emissionGradient,
      startGradient,
      endGradient,
      transitionGradient,
    },
    {
      tags: batch * length,
      alphas: elements,
      lossGradient: batch,
      emissionGradient: elements,
      startGradient: numTags,
      endGradient: numTags,
      transitionGradient: numTags ** 2,
    },
  );
  const scratch = (count: number): Binding<B> => ({
    buffer: target.allocate(count * 4),
    offset: 0,
    length: count,
    dtype: "float32",
  });
  const parts = partsOf(operands, shape);
  const scalars = scalarsOf(shape);
  const [marginals, drops] = [scratch(elements), scratch(elements)];
  target.launch({
    kernel: marginalKernel({ ...parts, hasTags: false }),
    bindings: [emissions, end, transitions, ...given(mask), alphas, lossGradient, marginals, drops],
    scalars,
  });
  target.launch({
    kernel: emissionKernel(parts),
    bindings: [marginals, ...given(tags, mask), lossGradient, emissionGradient],
    scalars,
  });
  const cells = (numTags + 2) * numTags;
  const groups = Math.max(1, Math.min(batch, Math.floor(maxPartials / cells)));
  const partials = scratch(groups * cells);
  target.launch({
    kernel: pairKernel(parts),
    bindings: [marginals, drops, alphas, transitions, ...given(tags, mask), lossGradient, partials],
    scalars: { ...scalars, groups },
  });
  target.launch({
    kernel: sumKernel,
    bindings: [partials, transitionGradient, startGradient, endGradient],
    scalars: { tags: numTags, groups },
  });
}

/** Sums of parts of a batch that are kept at a time. */
const maxPartials = 2 ** 20;

/**
 * marginals = lossGradient · probability of each tag, carried along where the mask is 0; drops = minus the logarithm of what came to
 * a tag from the place before, so that exp(alpha + transition + drop) is the probability of where it came from.
 */
const marginalKernel = byParts((parts): Kernel => {
  const { hasMask } = parts;
  const bindings: readonly KernelBinding[] = [
    { name: "emissions", access: "read" },
    { name: "end", access: "read" },
    { name: "transitions", access: "read" },
    ...maskBinding(parts),
    single("alphas", "read"),
    { name: "lossGradient", access: "read" },
    single("marginals", "write"),
    single("drops", "write"),
  ];
  return defineKernel({
    name: "crfMarginals",
    variant: variantOf(parts),
    bindings,
    scalars: crfScalars,
    body: (context) => `${crfFunctions(parts)}${highestFunction}${placeArrays("rows", "waiting")}
fn final_scores(i: u32) -> vec4f {
  let tags = vec4u(i) + vec4u(0u, 1u, 2u, 3u);
  return vec4f(final_score(tags.x), final_score(tags.y), final_score(tags.z), final_score(tags.w));
}
var<private> last: u32;
fn final_score(tag: u32) -> f32 { return at_alphas(last + tag) + at_end(tag); }
fn four(i: u32) -> vec4f { return vec4f(rows[i], rows[i + 1u], rows[i + 2u], rows[i + 3u]); }
fn four_waiting(i: u32) -> vec4f { return vec4f(waiting[i], waiting[i + 1u], waiting[i + 2u], waiting[i + 3u]); }
fn out_of(tag: u32, i: u32) -> vec4f {
  let e = tag * s.tags + i;
  return vec4f(at_transitions(e), at_transitions(e + 1u), at_transitions(e + 2u), at_transitions(e + 3u));
}
${chainMain(context, parts)}
  let slope = at_lossGradient(b);
  last = ((b + 1u) * s.length - 1u) * s.tags;
  ${logSumExpCode("final_scores(i)")}
  for (var t = s.length; t > 0u; ) {
    t--;
    let place = b * s.length + t;
    let present = is_present(place);
    var top = 0.0;
    if (present) { top = highest(place); }
    // Whether the place behind, of which the numbers wait, has tags of its own.
    let moves = (t + 1u < s.length) && is_present(place + 1u);
    let from_place = ${half("t + 1u")};
    workgroupBarrier();
    for (var tag = lane; tag < s.tags; tag += lanes) {
      let alpha = at_alphas(place * s.tags + tag);
      var marginal = 0.0;
      if (t + 1u == s.length) {
        marginal = slope * row_exp(vec4f(alpha + at_end(tag) - log_sum)).x;
      } else if (moves) {
        var sums = vec4f(0.0);
        for (var i = 0u; i < s.tags; i += 4u) {
          let share = four(from_place + i);
          let part = share * row_exp(out_of(tag, i) + four_waiting(from_place + i) + alpha);
          // A tag that cannot be has no way to it, and no logarithm of one.
          sums += select(part, vec4f(0.0), (share == vec4f(0.0)) | !counted(i));
        }
        marginal = (sums.x + sums.y) + (sums.z + sums.w);
      } else {
        marginal = rows[from_place + tag];
      }
      var drop = -alpha;
      if (present) { drop += at_emissions(place * s.tags + tag) - top; }
      rows[${half("t")} + tag] = marginal;
      waiting[${half("t")} + tag] = drop;
      store_marginals(place * s.tags + tag, marginal);
      store_drops(place * s.tags + tag, drop);
    }
  }
}
`,
    workgroups: chainWorkgroups,
    reference(views, scalars) {
      const { emissions, end, transitions, mask, alphas, lossGradient, marginals, drops } = named(
        bindings,
        views,
      ) as Readonly<Record<string, KernelView>> & MarginalViews;
      const { batch, length, tags: count } = scalars as unknown as CrfScalars;
      const isPresent = (place: number): boolean => !hasMask || mask[place] !== 0;
      for (let b = 0; b < batch; b++) {
        const last = ((b + 1) * length - 1) * count;
        const final = (j: number): number => (alphas[last + j] as number) + (end[j] as number);
        const total = logSumExp(count, final);
        for (let t = length - 1; t >= 0; t--) {
          const place = b * length + t;
          const top = isPresent(place) ? highestOf(emissions, place, count) : 0;
          for (let j = 0; j < count; j++) {
            const at = place * count + j;
            const alpha = alphas[at] as number;
            let marginal: number;
            if (t + 1 === length)
              marginal = (lossGradient[b] as number) * Math.exp(final(j) - total);
            else if (isPresent(place + 1)) {
              marginal = 0;
              for (let i = 0; i < count; i++) {
                const next = (place + 1) * count + i;
                const share = marginals[next] as number;
                const step = (transitions[j * count + i] as number) + (drops[next] as number);
                if (share !== 0) marginal += share * Math.exp(step + alpha);
              }
            } else marginal = marginals[at + count] as number;
            marginals[at] = marginal;
            drops[at] = (isPresent(place) ? (emissions[at] as number) - top : 0) - alpha;
          }
        }
      }
    },
  });
});

interface MarginalViews {
  readonly emissions: KernelView;
  readonly end: KernelView;
  readonly transitions: KernelView;
  readonly mask: KernelView;
  readonly alphas: KernelView;
  readonly lossGradient: KernelView;
  readonly marginals: KernelView;
  readonly drops: KernelView;
}

/** emissionGradient = marginals, minus lossGradient at the given tags. */
const emissionKernel = byParts((parts): Kernel => {
  const { hasTags, hasMask } = parts;
  const bindings: readonly KernelBinding[] = [
    single("marginals", "read"),
    ...tagsBinding(parts),
    ...maskBinding(parts),
    { name: "lossGradient", access: "read" },
    { name: "emissionGradient", access: "write" },
  ];
  return defineKernel({
    name: "crfEmissionGradient",
    variant: variantOf({ ...parts, isWide: false }),
    bindings,
    scalars: crfScalars,
    body: () => `${crfFunctions(parts)}
fn value(e: u32) -> f32 {
  let place = e / s.tags;
  if (!is_present(place)) { return 0.0; }
  let marginal = at_marginals(e);
  ${hasTags ? "if (at_tags(place) == e % s.tags) { return marginal - at_lossGradient(place / s.length); }" : ""}
  return marginal;
}
${linearMain()}
  let e = index * 4u;
  if (e >= s.batch * s.length * s.tags) { return; }
  store_emissionGradient(index, vec4f(value(e), value(e + 1u), value(e + 2u), value(e + 3u)));
}
`,
    workgroups: ({ batch, length, tags }) =>
      linearWorkgroups(Math.ceil(((batch as number) * (length as number) * (tags as number)) / 4)),
    reference(views, scalars) {
      const { marginals, tags, mask, lossGradient, emissionGradient } = named(
        bindings,
        views,
      ) as Readonly<Record<string, KernelView>> & EmissionViews;
      const { length, tags: count } = scalars as unknown as CrfScalars;
      for (const [e, marginal] of marginals.entries()) {
        const place = Math.floor(e / count);
        const isGiven = hasTags && tags[place] === e % count;
        const slope = lossGradient[Math.floor(place / length)] as number;
        const isPresent = !hasMask || mask[place] !== 0;
        emissionGradient[e] = isPresent ? marginal - (isGiven ? slope : 0) : 0;
      }
    },
  });
});

interface EmissionViews {
  readonly marginals: KernelView;
  readonly tags: KernelView;
  readonly mask: KernelView;
  readonly lossGradient: KernelView;
  readonly emissionGradient: KernelView;
}

/** partials[groups, tags + 2, tags]: gradients of transitions, of the start and of the end, from every so many-th sequence. */
const pairKernel = byParts((parts: CrfParts): Kernel => {
  const { hasTags, hasMask } = parts;
  const bindings: readonly KernelBinding[] = [
    single("marginals", "read"),
    single("drops", "read"),
    single("alphas", "read"),
    { name: "transitions", access: "read" },
    ...tagsBinding(parts),
    ...maskBinding(parts),
    { name: "lossGradient", access: "read" },
    single("partials", "write"),
  ];
  return defineKernel({
    name: "crfPairs",
    variant: variantOf({ ...parts, isWide: false }),
    bindings,
    scalars: [...crfScalars, { name: "groups", type: "u32" }],
    body: () => `${crfFunctions(parts)}
${linearMain()}
  if (index >= s.groups * (s.tags + 2u) * s.tags) { return; }
  let to_tag = index % s.tags;
  let row = index / s.tags % (s.tags + 2u);
  let step = at_transitions(min(row, s.tags - 1u) * s.tags + to_tag);
  var sum = 0.0;
  for (var b = index / s.tags / (s.tags + 2u); b < s.batch; b += s.groups) {
    let first = b * s.length;
    if (row == s.tags) { sum += at_marginals(first * s.tags + to_tag); }
    if (row > s.tags) { sum += at_marginals((first + s.length - 1u) * s.tags + to_tag); }
    ${hasTags ? "// What the tag before is, counting the start as one.\n    var previous = s.tags;\n    var given = 0.0;" : ""}
    for (var place = first; place < first + s.length; place++) {
      if (!is_present(place)) { continue; }
      if (row < s.tags && place > first) {
        let at = place * s.tags;
        let share = at_marginals(at + to_tag);
        if (share != 0.0) { sum += share * row_exp(vec4f(at_alphas(at - s.tags + row) + step + at_drops(at + to_tag))).x; }
      }
      ${
        hasTags
          ? `let tag = at_tags(place);
      if (previous == row && tag == to_tag) { given += 1.0; }
      previous = tag;`
          : ""
      }
    }
    ${
      hasTags
        ? `if (row > s.tags && previous == to_tag) { given += 1.0; }
    sum -= given * at_lossGradient(b);`
        : ""
    }
  }
  store_partials(index, sum);
}
`,
    workgroups: ({ groups, tags }) =>
      linearWorkgroups((groups as number) * ((tags as number) + 2) * (tags as number)),
    reference(views, scalars) {
      const { marginals, drops, alphas, transitions, tags, mask, lossGradient, partials } = named(
        bindings,
        views,
      ) as Readonly<Record<string, KernelView>> & PairViews;
      const {
        batch,
        length,
        tags: count,
        groups,
      } = scalars as unknown as CrfScalars & {
        groups: number;
      };
      const cells = (count + 2) * count;
      const sums = new Float64Array(partials.length);
      const add = (group: number, row: number, column: number, value: number): void => {
        // Tags that are none have no gradient.
        if (row > count + 1 || column >= count) return;
        const at = group * cells + row * count + column;
        sums[at] = (sums[at] as number) + value;
      };
      for (let b = 0; b < batch; b++) {
        const group = b % groups;
        const slope = lossGradient[b] as number;
        const [first, end] = [b * length, (b + 1) * length];
        for (let j = 0; j < count; j++) {
          add(group, count, j, marginals[first * count + j] as number);
          add(group, count + 1, j, marginals[(end - 1) * count + j] as number);
        }
        let previous = count;
        for (let place = first; place < end; place++) {
          if (hasMask && mask[place] === 0) continue;
          const at = place * count;
          for (let j = 0; j < count && place > first; j++) {
            const share = marginals[at + j] as number;
            for (let i = 0; i < count && share !== 0; i++) {
              const way =
                (alphas[at - count + i] as number) +
                (transitions[i * count + j] as number) +
                (drops[at + j] as number);
              add(group, i, j, share * Math.exp(way));
            }
          }
          if (!hasTags) continue;
          const tag = tags[place] as number;
          add(group, previous, tag, -slope);
          previous = tag;
        }
        if (hasTags && previous !== count) add(group, count + 1, previous, -slope);
      }
      partials.set(sums);
    },
  });
});

interface PairViews {
  readonly marginals: KernelView;
  readonly drops: KernelView;
  readonly alphas: KernelView;
  readonly transitions: KernelView;
  readonly tags: KernelView;
  readonly mask: KernelView;
  readonly lossGradient: KernelView;
  readonly partials: KernelView;
}

const sumKernel: Kernel = defineKernel({
  name: "crfSums",
  bindings: [
    single("partials", "read"),
    single("transitionGradient", "write"),
    single("startGradient", "write"),
    single("endGradient", "write"),
  ],
  scalars: [
    { name: "tags", type: "u32" },
    { name: "groups", type: "u32" },
  ],
  body: () => `${linearMain()}
  let cells = (s.tags + 2u) * s.tags;
  if (index >= cells) { return; }
  var sum = 0.0;
  for (var g = 0u; g < s.groups; g++) { sum += at_partials(g * cells + index); }
  let row = index / s.tags;
  if (row < s.tags) { store_transitionGradient(index, sum); }
  if (row == s.tags) { store_startGradient(index % s.tags, sum); }
  if (row > s.tags) { store_endGradient(index % s.tags, sum); }
}
`,
  workgroups: ({ tags }) => linearWorkgroups(((tags as number) + 2) * (tags as number)),
  reference([partials, transitionGradient, startGradient, endGradient], scalars) {
    const { tags, groups } = scalars as { tags: number; groups: number };
    const cells = (tags + 2) * tags;
    const sums = new Float64Array(cells);
    for (let e = 0; e < groups * cells; e++)
      sums[e % cells] = (sums[e % cells] as number) + (partials?.[e] as number);
    transitionGradient?.set(sums.subarray(0, tags * tags));
    startGradient?.set(sums.subarray(tags * tags, (tags + 1) * tags));
    endGradient?.set(sums.subarray((tags + 1) * tags));
  },
});
