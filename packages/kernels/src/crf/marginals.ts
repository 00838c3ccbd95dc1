import type { Kernel } from "@halfstep/device";
import {
  chainMain,
  chainWorkgroups,
  crfFunctions,
  half,
  highestFunction,
  highestOf,
  logSumExp,
  logSumExpCode,
  placeArrays,
} from "./chain.js";
import { type CrfParts, crfKernel, maskBinding, single } from "./crf-kernel.js";

/**
 * marginals = lossGradient · probability of each tag, copied along where the mask is 0. drops = minus the logarithm of the sum that
 * reaches a tag from the previous place: exp(alpha + transition + drop) is the probability of the previous tag.
 */
export const marginalKernel: (parts: CrfParts) => Kernel = crfKernel<
  "emissions" | "end" | "transitions" | "mask" | "alphas" | "lossGradient" | "marginals" | "drops"
>((parts) => {
  const { hasMask } = parts;
  return {
    name: "crfMarginals",
    bindings: [
      { name: "emissions", access: "read" },
      { name: "end", access: "read" },
      { name: "transitions", access: "read" },
      ...maskBinding(parts),
      single("alphas", "read"),
      { name: "lossGradient", access: "read" },
      single("marginals", "write"),
      single("drops", "write"),
    ],
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
    reference(
      { emissions, end, transitions, mask, alphas, lossGradient, marginals, drops },
      { batch, length, tags: count },
    ) {
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
  };
});
