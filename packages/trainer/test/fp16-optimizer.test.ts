import { readFileSync } from "node:fs";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import * as models from "@halfstep/models";
import * as optim from "@halfstep/optim";
import * as tensor from "@halfstep/tensor";
import { expect, test } from "vitest";
import { classifier, lossOf, type Samples, sampleBatches } from "./classes.js";

/** The loop that optim's README ports from apex, and what it says to print. It is JavaScript as it stands. */
function port(): { code: string; output: string } {
  const readme = readFileSync(new URL("../../optim/README.md", import.meta.url), "utf8");
  const match = /^<!-- port -->\n```ts\n(.*?)^```\n\n```text\n(.*?)^```/ms.exec(readme);
  if (!match) throw new Error("optim's README.md has no ported loop with output");
  const [, code, output] = match as unknown as [string, string, string];
  return { code, output };
}

/** Runs it, and returns what it prints. */
async function printed(): Promise<string> {
  const lines: string[] = [];
  const modules = {
    "@halfstep/models": models,
    "@halfstep/optim": optim,
    "@halfstep/tensor": tensor,
  };
  const body = port().code.replace(
    /^import (\{.*?\}) from ("[^"]+");$/gm,
    (_, members: string, specifier: string) => `const ${members} = modules[${specifier}];`,
  );
  const AsyncFunction = printed.constructor as new (
    ...source: string[]
  ) => (modules: object, console: object) => Promise<void>;
  await new AsyncFunction("modules", "console", body)(modules, {
    log: (...values: unknown[]) => lines.push(`${values.join(" ")}\n`),
  });
  return lines.join("");
}

test("code that uses FP16_Optimizer ports line by line", async () => {
  expect(await printed()).toBe(port().output);
});

test.each(await testTiers())("a step waits for nothing: GPU, %s", async (tier) => {
  const device = await requestTestDevice({ tier });
  const runtime = tensor.gpuRuntime(device);
  const model = classifier(runtime);
  const optimizer = new optim.FP16Optimizer(
    new optim.AdamW(runtime.target, tensor.flatten(model.parameters()), { lr: 0.01 }),
    { dynamicLossScale: true, dynamicLossArgs: { initScale: 2 ** 100 }, verbose: false },
  );
  const ema = new optim.ExponentialMovingAverage(optimizer);
  const norms: optim.MasterGradNorm[] = [];
  const [batch] = sampleBatches(1, 24, 0);
  const step = () =>
    runtime.step(() => {
      // Gradients of this loss times 2^100 overflow float32, until the scale has come down.
      optimizer.backward(lossOf(model, batch as Samples).mul(2 ** 30));
      norms.push(optimizer.clipMasterGrads(1));
      optimizer.step();
      ema.update();
      optimizer.zeroGrad();
    });
  await step();
  const overflowed = await norms[0]?.read();
  const before = device.counters.snapshot();
  for (let i = 0; i < 8; i++) await step();
  expect(device.counters.snapshot().hostWaits).toBe(before.hostWaits);
  const outcomes = await optimizer.scaler.drain();
  const applied = outcomes.filter(({ status }) => status === "applied").length;
  expect([outcomes[0]?.status, overflowed, outcomes.length]).toEqual(["skipped", -1, 9]);
  expect(applied).toBeGreaterThan(2);
  expect(await ema.updates()).toEqual([applied]);
  expect(await norms.at(-1)?.read()).toBeGreaterThan(0);
});
