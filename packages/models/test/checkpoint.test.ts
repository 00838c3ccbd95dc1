import { autocast } from "@halfstep/autocast";
import {
  checkpoint,
  cpuRuntime,
  crossEntropy,
  flatten,
  type Plan,
  type Runtime,
  type Tensor,
} from "@halfstep/tensor";
import { expect, test } from "vitest";
import { GPT } from "../src/index.js";

const [batch, length, vocabSize] = [2, 64, 48];

/** A training step of a GPT with dropout whose blocks are checkpoints, or not. */
function gpt(runtime: Runtime, layers: number, isCheckpointed: boolean) {
  const model = new GPT(runtime, {
    ...{ seed: 1, vocabSize, blockSize: length },
    ...{ nLayer: layers, nHead: 2, nEmbd: 32, dropout: 0.1 },
  });
  if (isCheckpointed)
    for (const block of model.transformer.h) {
      const forward = block.forward.bind(block);
      block.forward = (x: Tensor) => checkpoint(forward, x);
    }
  const words = Uint32Array.from({ length: batch * length + 1 }, (_, i) => (i * i) % vocabSize);
  const tokens = runtime.tensor(words.slice(0, -1), [batch, length]);
  const next = runtime.tensor(words.slice(1), [batch, length]);
  const step = (): Tensor => {
    const loss = autocast({ dtype: "float16" }, () => crossEntropy(model.forward(tokens), next));
    loss.mul(1024).backward();
    return loss;
  };
  return { model, step };
}

const planOf = (layers: number, isCheckpointed: boolean): Plan => {
  const runtime = cpuRuntime();
  return runtime.plan(gpt(runtime, layers, isCheckpointed).step);
};

test("GPT with checkpoints keeps what lies between its blocks, and its peak grows no faster", () => {
  const grown = (isCheckpointed: boolean, of: "activationBytes" | "peakBytes"): number =>
    (planOf(12, isCheckpointed).statistics[of] - planOf(4, isCheckpointed).statistics[of]) / 8;
  const residual = batch * length * 32 * 4;
  expect(grown(true, "activationBytes")).toBe(residual);
  expect(grown(true, "peakBytes")).toBeLessThan(1.5 * residual);
  expect(grown(false, "activationBytes")).toBeGreaterThan(8 * residual);
  expect(grown(false, "peakBytes")).toBeGreaterThan(8 * residual);
});

test("its gradients are the same bits, with 16-bit copies of the parameters too", async () => {
  const train = async (isCheckpointed: boolean, isFlat: boolean) => {
    const runtime = cpuRuntime();
    const { model, step } = gpt(runtime, 2, isCheckpointed);
    const parameters = [...model.parameters()];
    if (isFlat) flatten(parameters);
    const losses: Tensor[] = [];
    for (let i = 0; i < 2; i++)
      losses.push(
        await runtime.step(() => {
          const loss = step();
          for (const p of parameters) if (p.grad) p.assign(p.sub(p.grad.mul(1e-4)));
          if (i === 0) for (const p of parameters) p.zeroGrad();
          return loss;
        }),
      );
    const arrays = [...losses, ...parameters.flatMap((p) => p.grad ?? []), ...parameters];
    const values = await Promise.all(arrays.map((each) => each.toArray()));
    expect(values.length).toBe(2 + 2 * parameters.length);
    expect(values.every((each) => each.some((value) => value !== 0))).toBe(true);
    return { values, offset: model.generator.offset };
  };
  const kept = await train(false, false);
  expect(await train(true, false)).toEqual(kept);
  expect(await train(true, true)).toEqual(kept);
});
