import type { Binding, LaunchTarget } from "@halfstep/device";
import { requireLengths, requireTarget } from "../operands.js";
import { scratch } from "../scratch.js";
import { chainMain, chainWorkgroups, crfFunctions, half, placeArrays } from "./chain.js";
import { crfKernel, maskBinding, partsOf, single } from "./crf-kernel.js";
import { type CrfOperands, type CrfShape, given, requireCrf, scalarsOf } from "./shape.js";

/** Operands of Viterbi's algorithm. */
export interface CrfDecodeOperands<B> extends CrfOperands<B> {
  /** uint32 [batch, length]: the best tags; where the mask is 0, the last one before. */
  readonly tags: Binding<B>;
  /** float32 [batch] */
  readonly scores: Binding<B>;
}

/**
 * The sequence of tags with the highest score, and that score, by Viterbi's algorithm in one launch. Ties go to the first tag.
 */
export function crfDecode<B>(
  target: LaunchTarget<B>,
  operands: CrfDecodeOperands<B>,
  shape: CrfShape,
): void {
  requireTarget("crfDecode", target);
  requireCrf("crfDecode", operands, shape);
  const { emissions, start, end, transitions, mask, tags, scores } = operands;
  const places = shape.batch * shape.length;
  requireLengths("crfDecode", { tags, scores }, { tags: places, scores: shape.batch });
  const pointers = scratch(target, places * shape.numTags, "uint32");
  target.launch({
    kernel: decodeKernel(partsOf({ mask }, shape)),
    bindings: [emissions, start, end, transitions, ...given(mask), pointers, tags, scores],
    scalars: scalarsOf(shape),
  });
}

const decodeKernel = crfKernel<
  "emissions" | "start" | "end" | "transitions" | "mask" | "pointers" | "tags" | "scores"
>((parts) => {
  const { hasMask } = parts;
  return {
    name: "crfDecode",
    bindings: [
      { name: "emissions", access: "read" },
      { name: "start", access: "read" },
      { name: "end", access: "read" },
      { name: "transitions", access: "read" },
      ...maskBinding(parts),
      // The previous tag on the best path to each tag of a place.
      { name: "pointers", access: "readwrite", unit: 1, dtypes: ["uint32"] },
      { name: "tags", access: "write", unit: 1, dtypes: ["uint32"] },
      single("scores", "write"),
    ],
    // The bits of a NaN decide, as in argmax.
    body: (context) => `${crfFunctions(parts)}${placeArrays("rows")}
fn is_nan(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }
fn wins(v: f32, best: f32) -> bool { return !is_nan(best) & (is_nan(v) | (v > best)); }
${chainMain(context, parts)}
  for (var t = 0u; t < s.length; t++) {
    let place = b * s.length + t;
    let present = is_present(place);
    let from_place = ${half("t + 1u")};
    workgroupBarrier();
    for (var tag = lane; tag < s.tags; tag += lanes) {
      var score = 0.0;
      var pointer = tag;
      if (t == 0u) {
        score = at_start(tag);
      } else if (present) {
        score = rows[from_place] + at_transitions(tag);
        pointer = 0u;
        for (var i = 1u; i < s.tags; i++) {
          let path = rows[from_place + i] + at_transitions(i * s.tags + tag);
          let better = wins(path, score);
          score = select(score, path, better);
          pointer = select(pointer, i, better);
        }
      } else {
        score = rows[from_place + tag];
      }
      if (present) { score += at_emissions(place * s.tags + tag); }
      rows[${half("t")} + tag] = score;
      store_pointers(place * s.tags + tag, pointer);
    }
  }
  workgroupBarrier();
  storageBarrier();
  if (lane != 0u) { return; }
  let last = ${half("s.length - 1u")};
  var best = rows[last] + at_end(0u);
  var winner = 0u;
  for (var i = 1u; i < s.tags; i++) {
    let score = rows[last + i] + at_end(i);
    let better = wins(score, best);
    best = select(best, score, better);
    winner = select(winner, i, better);
  }
  store_scores(b, best);
  for (var t = s.length; t > 0u; ) {
    t--;
    let place = b * s.length + t;
    store_tags(place, winner);
    winner = at_pointers(place * s.tags + winner);
  }
}
`,
    workgroups: chainWorkgroups,
    reference(
      { emissions, start, end, transitions, mask, pointers, tags, scores },
      { batch, length, tags: count },
    ) {
      const isSingle = scores instanceof Float32Array;
      // Rounded as on a GPU, so that ties are the same on both.
      const rounded = (x: number): number => (isSingle ? Math.fround(x) : x);
      for (let b = 0; b < batch; b++) {
        let row = Array.from({ length: count }, (_, j) => start[j] as number);
        for (let t = 0; t < length; t++) {
          const place = b * length + t;
          const isPresent = !hasMask || mask[place] !== 0;
          const before = row;
          row = before.map((own, j) => {
            let score = own;
            let pointer = j;
            if (t > 0 && isPresent)
              [score, pointer] = bestOf(count, (i) =>
                rounded((before[i] as number) + (transitions[i * count + j] as number)),
              );
            pointers[place * count + j] = pointer;
            return isPresent ? rounded(score + (emissions[place * count + j] as number)) : score;
          });
        }
        const [best, winner] = bestOf(count, (i) =>
          rounded((row[i] as number) + (end[i] as number)),
        );
        scores[b] = best;
        let tag = winner;
        for (let place = (b + 1) * length - 1; place >= b * length; place--) {
          tags[place] = tag;
          tag = pointers[place * count + tag] as number;
        }
      }
    },
  };
});

/** The largest of `count` numbers and its index: ties go to the first, and NaN wins. */
function bestOf(count: number, value: (i: number) => number): [best: number, place: number] {
  let best = value(0);
  let winner = 0;
  for (let i = 1; i < count && !Number.isNaN(best); i++) {
    const other = value(i);
    if (!(other > best) && !Number.isNaN(other)) continue;
    best = other;
    winner = i;
  }
  return [best, winner];
}
