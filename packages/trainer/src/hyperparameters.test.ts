import { GradScaler } from "@halfstep/grad-scaler";
import { AdamW } from "@halfstep/optim";
import { ampPrimitives, cpuRuntime, flatten } from "@halfstep/tensor";
import { expect, it } from "vitest";
import { classifier } from "../test/classes.js";
import { hyperparametersOf } from "./hyperparameters.js";

const runtime = cpuRuntime();
const scaler = new GradScaler(ampPrimitives(runtime), { initScale: 8 });

it("has numbers, truths and lists as they are, through JSON", () => {
  const group = flatten(classifier(runtime).parameters());
  const optimizer = new AdamW(runtime.target, group, { lr: 0.01, eps: 1e-7 });
  const found = hyperparametersOf(optimizer, scaler);
  expect(JSON.parse(JSON.stringify(found))).toEqual(found);
  expect(found).toMatchObject({
    optimizer: { algorithm: "AdamW", lr: 0.01, eps: 1e-7, betas: [0.9, 0.999], maximize: false },
    lossScale: { initScale: 8, dynamic: true, hysteresisRefill: expect.any(String) },
  });
  expect(found.optimizer).not.toHaveProperty("params");
  expect(found).not.toHaveProperty("groups");
});

it("has what groups differ in group by group, and says that a rate follows a schedule", () => {
  const groups = [...classifier(runtime).parameters()].map((parameter, i) => ({
    params: flatten([parameter]),
    weightDecay: i === 0 ? 0.1 : 0,
  }));
  const optimizer = new AdamW(runtime.target, groups, { lr: () => 0.01 });
  const { optimizer: shared, groups: own } = hyperparametersOf(
    optimizer,
    new GradScaler(ampPrimitives(runtime), { enabled: false }),
  );
  expect(shared).toMatchObject({ algorithm: "AdamW", lr: "by a schedule", eps: 1e-8 });
  expect(shared).not.toHaveProperty("weightDecay");
  expect(own).toEqual(groups.map(({ weightDecay }) => ({ weightDecay })));
});

it("of an optimizer that tells nothing there is nothing", () => {
  const silent = { zeroGrad() {}, step() {} } as never;
  expect(hyperparametersOf(silent, scaler).optimizer).toEqual({});
});
