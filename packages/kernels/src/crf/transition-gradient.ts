import type { Kernel } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { crfFunctions } from "./chain.js";
import { type CrfParts, crfKernel, maskBinding, single, tagsBinding } from "./crf-kernel.js";

/**
 * partials[groups, tags + 2, tags]: gradients of transitions, of the start and of the end, each from the sequences with a
 * stride.
 */
export const pairKernel: (parts: CrfParts) => Kernel = crfKernel<
  "marginals" | "drops" | "alphas" | "transitions" | "tags" | "mask" | "lossGradient" | "partials"
>((parts) => {
  const { hasTags, hasMask } = parts;
  return {
    name: "crfPairs",
    bindings: [
      single("marginals", "read"),
      single("drops", "read"),
      single("alphas", "read"),
      { name: "transitions", access: "read" },
      ...tagsBinding(parts),
      ...maskBinding(parts),
      { name: "lossGradient", access: "read" },
      single("partials", "write"),
    ],
    scalars: [{ name: "groups", type: "u32" }],
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
    reference(
      { marginals, drops, alphas, transitions, tags, mask, lossGradient, partials },
      { batch, length, tags: count, groups },
    ) {
      const cells = (count + 2) * count;
      const sums = new Float64Array(partials.length);
      const add = (group: number, row: number, column: number, value: number): void => {
        // Invalid tags have no gradient.
        if (row > count + 1 || column >= count) return;
        const at = group * cells + row * count + column;
        sums[at] = (sums[at] as number) + value;
      };
      for (let b = 0; b < batch; b++) {
        const group = b % (groups as number);
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
  };
});

/** The gradients of transitions, of the start and of the end, from the partial sums of groups of sequences. */
export const sumKernel: Kernel = defineKernel({
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
