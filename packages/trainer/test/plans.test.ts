import { autocast } from "@halfstep/autocast";
import { GradScaler } from "@halfstep/grad-scaler";
import { GPT } from "@halfstep/models";
import { AdamW } from "@halfstep/optim";
import { ampPrimitives, cpuRuntime, crossEntropy, dumpPlan, flatten } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { plansOf, precisions, references } from "./reference-steps.js";

// What the planner makes of the reference models' training steps, pinned: `vitest run test/plans.test.ts -u` after a change
// that was meant.

describe.each(references)("$name", (reference) => {
  const plans = plansOf(cpuRuntime(), reference);

  test("its plans are those of the snapshot", async () => {
    const text = precisions.map(
      (name) => `${name}\n${dumpPlan(plans[name], { detail: "summary" })}`,
    );
    const file = reference.name.replace(/\W+/g, "-").toLowerCase();
    await expect(`${text.join("\n\n")}\n`).toMatchFileSnapshot(`./plans/${file}.txt`);
  });

  test("no cast costs a launch", () => {
    const casts = precisions.map((name) => plans[name].statistics.casts);
    expect(casts).toEqual([0, 0, 0]);
  });

  test("half precision keeps little more than half as much for the backward pass", () => {
    const bytes = precisions.map((name) => plans[name].statistics.activationBytes);
    const [single, ...halves] = bytes as [number, number, number];
    expect(Math.max(...halves) / single).toBeLessThanOrEqual(0.55);
  });
});

test("planning a step leaves no trace", async () => {
  const train = async (isPlanned: boolean) => {
    const runtime = cpuRuntime();
    const model = new GPT(runtime, {
      ...{ seed: 1, vocabSize: 20, blockSize: 8 },
      ...{ nLayer: 1, nHead: 2, nEmbd: 16, dropout: 0.1 },
    });
    const optimizer = new AdamW(runtime.target, flatten(model.parameters()), { lr: 0.01 });
    const scaler = new GradScaler(ampPrimitives(runtime), {
      growthInterval: 2,
      outcomeSchedule: false,
    });
    const words = runtime.tensor(Uint32Array.from({ length: 8 }, (_, i) => i * 2));
    const step = () => {
      const scores = autocast({ dtype: "float16" }, () => model.forward(words.reshape([1, 8])));
      scaler.scale(crossEntropy(scores.reshape([8, 20]), words)).backward();
      scaler.step(optimizer);
      scaler.update();
      optimizer.zeroGrad();
      return 0;
    };
    for (let i = 0; i < 5; i++) {
      if (isPlanned) expect(runtime.plan(step).launches.length).toBeGreaterThan(20);
      await runtime.step(step);
    }
    const parameters = await Promise.all([...model.parameters()].map((p) => p.toArray()));
    const outcomes = await scaler.drain();
    return {
      parameters,
      outcomes,
      state: await scaler.stateDict(),
      offset: model.generator.offset,
    };
  };
  expect(await train(true)).toEqual(await train(false));
});
