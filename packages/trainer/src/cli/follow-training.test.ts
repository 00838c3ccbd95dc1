import type { StepOutcome } from "@halfstep/grad-scaler";
import { expect, it } from "vitest";
import type { MetricsLine } from "../summary.js";
import { followTraining } from "./follow-training.js";

it("records every step, shows some, and says which were skipped", () => {
  const shown: string[] = [];
  const recorded: MetricsLine[] = [];
  const follow = followTraining({
    ...{ label: "float16", epochs: 1, steps: 3, batchSize: 8 },
    folder: { record: (metrics) => recorded.push(metrics) },
    stream: { write: (text) => shown.push(text) },
  });
  // Programs that are compiled quickly are not worth a line.
  follow.onCompile({ compiled: 0, total: 1, kernel: "matmul" });
  follow.onCompile({ compiled: 1, total: 1, kernel: "matmul" });
  for (const step of [1, 2, 3]) {
    const isSkipped = step === 2;
    follow.onStep(
      {
        ...{ precision: "float16", step, epoch: 1, loss: isSkipped ? null : 1 / step, lr: 0.1 },
        ...{ applied: !isSkipped, scale: step > 2 ? 4 : 8 },
      },
      {
        ...{ step, scaleBefore: step > 2 ? 4 : 8, scaleAfter: step > 1 ? 4 : 8 },
        status: isSkipped ? "skipped" : "applied",
      } as StepOutcome,
    );
  }
  follow.onEvaluation({
    ...{ kind: "evaluation", precision: "float16", step: 3, epoch: 1, best: true },
    values: { loss: 0.25, accuracy: 0.875, iou: null },
  });
  follow.note("a note");
  follow.stop();
  expect(recorded.map(({ step }) => step)).toEqual([1, 2, 3, 3]);
  expect(shown).toEqual([
    expect.stringMatching(/^float16 · epoch 1\/1 · step 1\/3 · loss 1\.0000 · .* samples\/s/),
    "step 2 skipped, scale 8 → 4\n",
    expect.stringMatching(/^float16 · .* step 3\/3 · loss 0\.3333 · .* scale 4 · skipped 1 · /),
    "evaluation after step 3, epoch 1 · loss 0.2500 · accuracy 87.50 % · iou – · best\n",
    "a note\n",
  ]);
});
