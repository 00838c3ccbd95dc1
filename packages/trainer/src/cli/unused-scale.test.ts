import { expect, it } from "vitest";
import type { LossScaleFlags } from "../precision.js";
import { noteUnusedScale } from "./unused-scale.js";

it("names flags that no precision of the run has use for", () => {
  const notesOf = (precisions: readonly string[], flags: LossScaleFlags): readonly string[] => {
    const notes: string[] = [];
    noteUnusedScale(precisions, flags, (line) => notes.push(line));
    return notes;
  };
  expect(notesOf(["float32"], { staticLossScale: 8 })).toEqual([
    "--static-loss-scale 8 is ignored: float32 has no such loss scale",
  ]);
  expect(notesOf(["O3"], { initScale: 4 })).toEqual([
    "--init-scale 4 is ignored: O3 has no such loss scale",
  ]);
  const used: readonly (readonly [readonly string[], LossScaleFlags])[] = [
    [["float32"], {}],
    [["float32", "float16"], { staticLossScale: 8 }],
    [["float16"], { initScale: 4 }],
    [["O3"], { staticLossScale: 128 }],
  ];
  expect(used.flatMap((each) => notesOf(...each))).toEqual([]);
});
