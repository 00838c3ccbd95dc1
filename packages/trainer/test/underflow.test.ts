import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { GradScaler, type GradScalerOptions, type StepOutcome } from "@halfstep/grad-scaler";
import { SGD } from "@halfstep/optim";
import { ampPrimitives, cpuRuntime, flatten, gpuRuntime, type Runtime } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { classifier, lossOf, samples } from "./classes.js";

const runtimes: readonly (readonly [string, () => Promise<Runtime>])[] = [
  ["the CPU", async () => cpuRuntime({ underflow: "afterZeros" })],
  ["the GPU", async () => gpuRuntime(await requestTestDevice(), { underflow: "afterZeros" })],
];

/** Outcomes of a training whose loss is multiplied by a factor, each read before the next step. */
async function train(
  runtime: Runtime,
  factors: readonly number[],
  options: GradScalerOptions,
): Promise<readonly (StepOutcome | undefined)[]> {
  const model = classifier(runtime);
  const optimizer = new SGD(runtime.target, flatten(model.parameters()), { lr: 0.1 });
  const scaler = new GradScaler(ampPrimitives(runtime), options);
  const outcomes: (StepOutcome | undefined)[] = [];
  for (const [step, factor] of factors.entries()) {
    const batch = samples(16, step);
    await runtime.step(() => {
      const loss = autocast({ dtype: "float16" }, () => lossOf(model, batch));
      scaler.scale(loss.mul(factor)).backward();
      scaler.step(optimizer);
      scaler.update();
      optimizer.zeroGrad();
    });
    outcomes.push((await scaler.drain()).at(-1));
  }
  return outcomes;
}

test.each(runtimes)(
  "steps without any gradient say so, and where it was lost, on %s",
  async (_, make) => {
    const factors = [1, 2 ** -28, 2 ** -28, 1];
    const outcomes = await train(await make(), factors, { initScale: 1 });
    expect(outcomes.map((outcome) => outcome?.status)).toEqual(new Array(4).fill("applied"));
    const zeros = outcomes.map((outcome) => outcome?.zeroGradients);
    expect(zeros).toMatchObject([
      undefined,
      {},
      { origin: { kind: "underflow", exactZeros: 0, roundedToZero: 48, elements: 48 } },
      undefined,
    ] as object[]);
    expect(zeros[2]?.origin?.op).toContain("in the backward of cast");
  },
);

test.each(runtimes)(
  "a target for underflow raises the scale where nothing is left, on %s",
  async (_, make) => {
    const factors = new Array<number>(6).fill(2 ** -30);
    const rule = { initScale: 1, targetUnderflow: 0.01, growthInterval: 2 };
    const outcomes = await train(await make(), factors, rule);
    const [, second, , fourth, , last] = outcomes;
    // All was rounded to zero, and the scale goes up at once as far as the largest number before rounding allows.
    expect([second?.underflow, second?.scaleBefore]).toEqual([1, 1]);
    expect(second?.scaleAfter).toBeGreaterThan(2 ** 20);
    expect(outcomes.map((outcome) => outcome?.zeroGradients !== undefined)).toEqual([
      ...[true, true, false, false, false, false],
    ]);
    expect(fourth?.underflow).toBeLessThan(0.01);
    expect([last?.status, last?.scaleAfter]).toEqual(["applied", second?.scaleAfter]);
  },
);
