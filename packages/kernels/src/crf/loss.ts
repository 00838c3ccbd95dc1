import type { Binding, Launch } from "@halfstep/device";
import { requireLengths } from "../operands.js";
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
import { crfKernel, maskBinding, partsOf, single, tagsBinding } from "./crf-kernel.js";
import { type CrfOperands, type CrfShape, given, requireCrf, scalarsOf } from "./shape.js";

/** Operands of the loss of a conditional random field. */
export interface CrfLossOperands<B> extends CrfOperands<B> {
  /** uint32 [batch, length]. */
  readonly tags?: Binding<B> | undefined;
  /** float32 [batch] */
  readonly losses: Binding<B>;
  /** float32 [batch, length, tags], for `crfLossBackward`. */
  readonly alphas: Binding<B>;
}

/**
 * losses = log Σ exp score over all tags of a sequence, by the forward algorithm, minus the score of its `tags`; without tags the
 * log-partition alone. An invalid tag gives NaN.
 *
 * The largest emission of each place is subtracted from all its emissions. It cancels out, because it is the same for all tags,
 * and the smaller sums have more fractional digits.
 */
export function crfLoss<B>(operands: CrfLossOperands<B>, shape: CrfShape): Launch<B> {
  requireCrf("crfLoss", operands, shape);
  const { emissions, start, end, transitions, tags, mask, losses, alphas } = operands;
  const places = shape.batch * shape.length;
  requireLengths(
    "crfLoss",
    { tags, losses, alphas },
    { tags: places, losses: shape.batch, alphas: places * shape.numTags },
  );
  return {
    kernel: lossKernel(partsOf(operands, shape)),
    bindings: [emissions, start, end, transitions, ...given(tags, mask), losses, alphas],
    scalars: scalarsOf(shape),
  };
}

const lossKernel = crfKernel<
  "emissions" | "start" | "end" | "transitions" | "tags" | "mask" | "losses" | "alphas"
>((parts) => {
  const { hasTags, hasMask } = parts;
  return {
    name: "crfLoss",
    bindings: [
      { name: "emissions", access: "read" },
      { name: "start", access: "read" },
      { name: "end", access: "read" },
      { name: "transitions", access: "read" },
      ...tagsBinding(parts),
      ...maskBinding(parts),
      single("losses", "write"),
      single("alphas", "write"),
    ],
    // The end is one more place with a single tag: a second copy of the sum would double the compile time.
    body: (context) => `${crfFunctions(parts)}${highestFunction}${placeArrays("rows")}
fn four(i: u32) -> vec4f { return vec4f(rows[i], rows[i + 1u], rows[i + 2u], rows[i + 3u]); }
fn into(tag: u32, i: u32, is_end: bool) -> vec4f {
  if (is_end) { return vec4f(at_end(i), at_end(i + 1u), at_end(i + 2u), at_end(i + 3u)); }
  let place = (vec4u(i) + vec4u(0u, 1u, 2u, 3u)) * s.tags + tag;
  return vec4f(at_transitions(place.x), at_transitions(place.y), at_transitions(place.z), at_transitions(place.w));
}
${chainMain(context, parts)}
  var score = 0.0;
  ${hasTags ? "var previous = 0xffffffffu;\n  var is_tag = true;" : ""}
  for (var t = 0u; t <= s.length; t++) {
    let is_end = t == s.length;
    let place = b * s.length + min(t, s.length - 1u);
    let present = !is_end && is_present(place);
    var top = 0.0;
    if (present) { top = highest(place); }
    let from_place = ${half("t + 1u")};
    workgroupBarrier();
    for (var tag = lane; tag < select(s.tags, 1u, is_end); tag += lanes) {
      var alpha = 0.0;
      if (t == 0u) {
        alpha = at_start(tag);
      } else if (present || is_end) {
        ${logSumExpCode("four(from_place + i) + into(tag, i, is_end)")}
        alpha = log_sum;
      } else {
        alpha = rows[from_place + tag];
      }
      if (present) { alpha += at_emissions(place * s.tags + tag) - top; }
      rows[${half("t")} + tag] = alpha;
      if (!is_end) { store_alphas(place * s.tags + tag, alpha); }
    }
    ${
      hasTags
        ? `if (present) {
      let tag = at_tags(place);
      is_tag = is_tag & (tag < s.tags);
      var step = 0.0;
      if (previous == 0xffffffffu) { step = at_start(tag); } else { step = at_transitions(previous * s.tags + tag); }
      score += step + (at_emissions(place * s.tags + tag) - top);
      previous = min(tag, s.tags - 1u);
    }`
        : "score -= top;"
    }
  }
  if (lane == 0u) {
    let log_sum = rows[${half("s.length")}];
    ${
      hasTags
        ? `if (previous != 0xffffffffu) { score += at_end(previous); }
    // WGSL has no constant for NaN.
    let no_number = bitcast<f32>(0x7fc00000u | min(b, 1u));
    store_losses(b, select(no_number, log_sum - score, is_tag));`
        : "store_losses(b, log_sum - score);"
    }
  }
}
`,
    workgroups: chainWorkgroups,
    reference(
      { emissions, start, end, transitions, tags, mask, losses, alphas },
      { batch, length, tags: count },
    ) {
      for (let b = 0; b < batch; b++) {
        let score = 0;
        let previous: number | undefined;
        for (let t = 0; t < length; t++) {
          const place = b * length + t;
          const isPresent = !hasMask || mask[place] !== 0;
          const top = isPresent ? highestOf(emissions, place, count) : 0;
          const before = (place - 1) * count;
          for (let j = 0; j < count; j++) {
            let alpha = start[j] as number;
            if (t > 0)
              alpha = isPresent
                ? logSumExp(
                    count,
                    (i) => (alphas[before + i] as number) + (transitions[i * count + j] as number),
                  )
                : (alphas[before + j] as number);
            alphas[place * count + j] = isPresent
              ? alpha + ((emissions[place * count + j] as number) - top)
              : alpha;
          }
          if (!hasTags) score -= top;
          else if (isPresent) {
            const tag = tags[place] as number;
            const step = previous === undefined ? start[tag] : transitions[previous * count + tag];
            const emission = tag < count ? (emissions[place * count + tag] as number) : Number.NaN;
            score += (step ?? Number.NaN) + (emission - top);
            previous = tag;
          }
        }
        if (previous !== undefined) score += end[previous] ?? Number.NaN;
        const last = (b * length + length - 1) * count;
        losses[b] =
          logSumExp(count, (i) => (alphas[last + i] as number) + (end[i] as number)) - score;
      }
    },
  };
});
