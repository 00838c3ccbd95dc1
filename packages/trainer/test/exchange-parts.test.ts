import { autocast } from "@halfstep/autocast";
import { GradientExchange, inProcess } from "@halfstep/distributed";
import { GradScaler } from "@halfstep/grad-scaler";
import { GPT } from "@halfstep/models";
import { AdamW } from "@halfstep/optim";
import { ampPrimitives, crossEntropy, flatten } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { hardwareClasses, planningRuntime } from "./planned-steps.js";
import { undrawn } from "./reference-steps.js";

// Where in the backward pass of a GPT the parts of its gradients are ready to be exchanged.

/** Each part in the order of its exchange: its share of the bytes, and of the backward pass that comes before it. */
function partsOf(hardware: (typeof hardwareClasses)[number], vocabSize: number) {
  const runtime = planningRuntime(hardware);
  const model = undrawn(
    () =>
      new GPT(runtime, {
        ...{ seed: 0, vocabSize, blockSize: 256 },
        ...{ nLayer: 6, nHead: 3, nEmbd: 192, dropout: 0.1 },
      }),
  );
  const parameters = [...model.parameters()];
  const [matrices, others] = [true, false].map((isMatrix) =>
    parameters.filter(({ shape }) => shape.length >= 2 === isMatrix),
  ) as [typeof parameters, typeof parameters];
  const optimizer = new AdamW(
    runtime.target,
    [{ params: flatten(matrices) }, { params: flatten(others), weightDecay: 0 }],
    { lr: 1e-3 },
  );
  const scaler = new GradScaler(ampPrimitives(runtime), { outcomeSchedule: false });
  const [carrier] = inProcess(2, { hosts: ["a", "b"] });
  const exchange = new GradientExchange(carrier as NonNullable<typeof carrier>, {
    wire: "float16",
  });
  const tokens = runtime.tensor(new Uint32Array(8 * 256), [8, 256]);
  const plan = runtime.plan(() => {
    const loss = autocast({ dtype: "float16" }, () => {
      const scores = model.forward(tokens).reshape([8 * 256, vocabSize]);
      return crossEntropy(scores, runtime.tensor(new Uint32Array(8 * 256)));
    });
    scaler.scale(loss).backward();
    exchange.reduce(optimizer);
    scaler.step(optimizer);
    scaler.update();
    return loss;
  });
  const first = plan.launches.findIndex(({ isBackward }) => isBackward);
  const last = plan.hostOps.at(-1)?.position as number;
  const total = parameters.reduce((sum, { size }) => sum + size, 0);
  return plan.hostOps.map(({ position, part }) => ({
    ready: Math.round((100 * (position - first)) / (last - first)),
    share: Math.round((100 * part.length) / total),
    part: [part.offset, part.length],
    stage: part.rows?.stage,
  }));
}

test("five parts of a GPT's gradients get ready one after the other", () => {
  const [onCpus = [], onGpus = []] = hardwareClasses.map((hardware) => partsOf(hardware, 65));
  console.log(
    `note: gradients of a GPT of 6 layers are ready at ${onGpus.map(({ ready, share }) => `${ready} % (${share} % of them)`).join(", ")} of the backward pass`,
  );
  expect(onGpus).toHaveLength(5);
  for (const [i, { ready }] of onGpus.entries())
    expect(ready).toBeGreaterThanOrEqual(onGpus[i - 1]?.ready ?? 1);
  expect(onGpus[0]?.ready).toBeLessThan(40);
  expect(onGpus[1]?.ready).toBeLessThan(70);
  // Ranks on other hardware exchange the same parts in the same order.
  expect(onCpus.map(({ part }) => part)).toEqual(onGpus.map(({ part }) => part));
});

test("the gradient of a tied embedding is ready but for the rows of the batch when the head's product is", () => {
  const [onCpus = [], onGpus = []] = hardwareClasses.map((hardware) => partsOf(hardware, 4096));
  console.log(
    `note: with 4096 words, at ${onGpus.map(({ ready, share, stage = "whole" }) => `${ready} % (${share} %, ${stage})`).join(", ")}`,
  );
  const [rest] = onGpus;
  expect(rest).toMatchObject({ stage: "rest", part: [0, 4096 * 192] });
  expect(rest?.ready).toBeLessThan(10);
  // Behind the rows come the biases alone, which are a small group.
  expect(onGpus.at(-2)).toMatchObject({ stage: "rows", part: [0, 4096 * 192] });
  expect(onCpus.map(({ part, stage }) => [part, stage])).toEqual(
    onGpus.map(({ part, stage }) => [part, stage]),
  );
});
