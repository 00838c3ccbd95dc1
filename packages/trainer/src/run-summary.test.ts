import { GradScaler } from "@halfstep/grad-scaler";
import { applyRecipe } from "@halfstep/nn";
import { AdamW } from "@halfstep/optim";
import { ampPrimitives, cpuRuntime, flattenByDType } from "@halfstep/tensor";
import { expect, it } from "vitest";
import { classifier, lossOf, type Samples, sampleBatches } from "../test/classes.js";
import { recipeFor, storageFor } from "./precision.js";
import { runSummary } from "./run-summary.js";
import { train } from "./train.js";

it("adds up what a run has held, masters included", async () => {
  const runtime = cpuRuntime();
  const model = applyRecipe(classifier(runtime), recipeFor("O2"));
  const groups = flattenByDType(model.parameters());
  const optimizer = new AdamW(
    runtime.target,
    groups.map((params) => ({ params })),
    { storage: storageFor(recipeFor("O2")) },
  );
  const startedAt = performance.now();
  const result = await train<Samples>({
    ...{ runtime, optimizer, epochs: 1, precision: "O2", lr: () => 1e-3 },
    scaler: new GradScaler(ampPrimitives(runtime), { enabled: false }),
    batches: () => sampleBatches(3, 8, 0),
    loss: (batch) => lossOf(model, batch),
  });
  const options = {
    ...{ precision: "O2", result, test: { loss: 0.5, iou: 0.25 }, model, groups, moments: 2 },
    ...{ samplesPerStep: 8, peakBytes: undefined, startedAt },
  };
  const summary = await runSummary(options);
  const [flat] = groups;
  const values = flat?.values.byteLength ?? 0;
  expect(groups).toHaveLength(1);
  expect(flat?.gradients.byteLength).toBe(2 * values);
  expect(summary).toMatchObject({
    ...{ precision: "O2", steps: 3, appliedSteps: 3, skippedSteps: 0, finalScale: 1 },
    ...{ test: { loss: 0.5, iou: 0.25 }, parameterBytes: values, optimizerBytes: 6 * values },
    peakBytes: result.stepBytes + 9 * values,
    phases: { data: { times: 7 }, record: { times: 3 }, submit: { times: 3 } },
  });
  expect(summary.samplesPerSecond).toBeCloseTo(8000 / summary.msPerStep, 6);
  expect((await runSummary({ ...options, peakBytes: 7 })).peakBytes).toBe(7);
});
