import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { GradScaler, type OverflowCause } from "@halfstep/grad-scaler";
import { SGD } from "@halfstep/optim";
import { ampPrimitives, flatten, gpuRuntime, type ProvenanceMode } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { classifier, lossOf, samples } from "./classes.js";

/** The causes of the skipped steps of a short training, with gradients that overflow in the second layer. */
async function causes(
  provenance: ProvenanceMode,
  poison?: number,
): Promise<readonly (OverflowCause | undefined)[]> {
  const runtime = gpuRuntime(await requestTestDevice(), { provenance });
  const model = classifier(runtime);
  const optimizer = new SGD(runtime.target, flatten(model.parameters()), { lr: 0.1 });
  // Far beyond what float16 gradients of this loss can carry.
  const scaler = new GradScaler(ampPrimitives(runtime), { initScale: 2 ** 30 });
  const seen: (OverflowCause | undefined)[] = [];
  for (let step = 0; step < 4; step++) {
    const batch = samples(16, step);
    if (poison !== undefined) batch.features[poison] = Number.NaN;
    await runtime.step(() => {
      const loss = autocast({ dtype: "float16" }, () => lossOf(model, batch));
      scaler.scale(loss).backward();
      scaler.step(optimizer);
      scaler.update();
      optimizer.zeroGrad();
    });
    // Told of each outcome before the next step, as where the host reads often.
    seen.push(...(await scaler.drain()).map(({ cause }) => cause));
  }
  return seen;
}

test("a skipped step says which op of which module overflowed first", async () => {
  const [first] = await causes("always");
  expect(first).toMatchObject({
    pass: "backward",
    origin: { tensor: "result float16 [16, 3]", element: 0, kind: "infinity" },
  });
  expect(first?.origin?.op).toContain("in the backward of cast");
});

test("a NaN of the data is found where it enters, and the forward pass is blamed", async () => {
  const [first] = await causes("always", 6 * 5 + 2);
  expect(first).toMatchObject({
    pass: "forward",
    origin: {
      op: "cast",
      module: "layers.0",
      tensor: "argument float32 [16, 6]",
      element: 32,
      kind: "nan",
    },
  });
});

test("after a skip the steps that follow are searched, and each that is skipped is explained", async () => {
  const all = await causes("afterSkip");
  expect(all.map((cause) => cause?.origin !== undefined)).toEqual([false, true, true, true]);
  expect((await causes("off")).map((cause) => cause?.origin)).toEqual(new Array(4).fill(undefined));
});
