import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { defineKernel, linearMain, linearWorkgroups } from "@halfstep/kernels";
import {
  callable,
  cpuRunner,
  defineOp,
  gpuRunner,
  kinds,
  type Runner,
  relu,
  runtime,
  type Tensor,
  withScope,
} from "@halfstep/tensor";
import { runnerContract } from "@halfstep/tensor/testing";
import { describe, expect, test } from "vitest";
import { debugging, firstDifference, type LoggedLaunch } from "./debugging-runner.js";

const tiers = await testTiers();

const debugged = [
  { name: "debugged CPU", create: () => debugging(cpuRunner()).runner },
  ...tiers.map((tier) => ({
    name: `debugged GPU, ${tier}`,
    create: async () => debugging(gpuRunner(await requestTestDevice({ tier }))).runner,
  })),
];

describe.each(debugged)("$name", (subject) => {
  for (const { name, run } of runnerContract(subject)) test(name, run);
});

/** Its WGSL triples a number that its reference doubles. */
const broken = defineKernel({
  name: "wrongAtSix",
  bindings: [
    { name: "x", access: "read" },
    { name: "y", access: "write" },
  ],
  scalars: [{ name: "count", type: "u32" }],
  body: () => `${linearMain()}
    if (index * 4u >= s.count) { return; }
    store_y(index, load_x(index) * select(vec4f(2.0), vec4f(2.0, 2.0, 3.0, 2.0), index == 1u));
  }`,
  workgroups: ({ count = 0 }) => linearWorkgroups(Math.ceil(count / 4)),
  reference([x, y]) {
    for (let i = 0; x && y && i < y.length; i++) y[i] = 2 * (x[i] as number);
  },
});

const doubling = defineOp<null>({
  name: "double",
  castPolicy: "none",
  shape: (inputs) => inputs,
  forward({ target, inputs, outputs }) {
    const scalars = { count: outputs[0]?.length ?? 0 };
    target.launch({ kernel: broken, bindings: [...inputs, ...outputs], scalars });
  },
  backward: ({ gradients: [g] }) => [g?.mul(2)],
});
const double = callable(doubling, { x: kinds.tensor }, (x: Tensor) => doubling.apply([x], null));

async function logOf(inner: Runner, hardwareClass?: string): Promise<readonly LoggedLaunch[]> {
  const { runner, log } = debugging(inner);
  // Plans are equal where the class of the hardware is.
  const own = runtime({ ...runner, hardwareClass }, { noteOps: true });
  const weight = own.variable([1, -2, 3, 0.5, 2, -1, 4, 8], [8], { requiresGrad: true });
  await own.step((): Tensor => {
    const hidden = withScope(
      () => "first",
      () => relu(weight.mul(0.5)).add(1),
    );
    const result = withScope(
      () => "second.activation",
      () => double(hidden),
    );
    const loss = result.square().sum();
    loss.backward();
    return loss;
  });
  return log;
}

test.each(tiers)("the log of a step tells which launch is broken: GPU, %s", async (tier) => {
  const [found, expected] = [
    await logOf(gpuRunner(await requestTestDevice({ tier }))),
    await logOf(cpuRunner()),
  ];
  expect(found.map(({ kernel }) => kernel)).toEqual(expected.map(({ kernel }) => kernel));
  expect(await firstDifference(expected, expected)).toBeUndefined();
  expect(await firstDifference(found, expected)).toMatchObject({
    launch: { run: 0, kernel: "wrongAtSix", site: "second.activation.double" },
    ...{ result: "y", element: 6, expected: 6, found: 9 },
  });
});
