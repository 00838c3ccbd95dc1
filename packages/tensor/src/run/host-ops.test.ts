import { requestDevice } from "@halfstep/device/node";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, test } from "vitest";
import {
  cpuRuntime,
  defineHostOp,
  gpuRuntime,
  type HostFunction,
  HostOpError,
  hostLaunch,
  type Runtime,
  type Tensor,
  type Variable,
} from "../index.js";

// Functions of the host cut a step into segments. Only the work behind them waits.

const exchange = defineHostOp({
  name: "exchange",
  bindings: [{ name: "x", access: "readwrite" }],
});
const gather = defineHostOp({
  name: "gather",
  bindings: [
    { name: "x", access: "read" },
    { name: "y", access: "write" },
  ],
});

const floats = (bytes: Uint8Array<ArrayBuffer> | undefined): Float32Array =>
  new Float32Array(bytes?.buffer ?? new ArrayBuffer(0));

/** Waits a moment, and multiplies by a number, as an exchange with equal peers would. */
const times =
  (factor: number): HostFunction =>
  async ([x]) => {
    await new Promise((resolve) => setTimeout(resolve, 2));
    for (const [i, value] of floats(x).entries()) floats(x)[i] = value * factor;
  };

/** A step that computes before, between and behind two host ops, and changes a state before the first. */
function program(runtime: Runtime) {
  const weight = runtime.variable([1, 2, 3, 4], [4]);
  const gradient = runtime.variable([0, 0, 0, 0], [4]);
  const other = runtime.variable([0, 0, 0, 0], [4]);
  const statistics = runtime.variable([8], [1]);
  const step =
    (number: number, first: HostFunction = times(2), second: HostFunction = times(10)) =>
    (): Tensor => {
      statistics.assign(statistics.mul(0.5).add(number));
      const x = runtime.tensor([number, 1, 2, 3]).mul(weight);
      gradient.assign(x.add(1));
      runtime.target.launch(hostLaunch(exchange, [gradient.operand()], first));
      other.assign(x.mul(3));
      runtime.target.launch(hostLaunch(exchange, [other.operand()], second));
      const loss = x.sum();
      weight.assign(weight.add(gradient).add(other));
      return loss;
    };
  return { weight, gradient, other, statistics, step };
}

const valuesOf = async (tensors: readonly Tensor[]): Promise<number[][]> =>
  (await Promise.all(tensors.map((each) => each.toArray()))).map((values) => [...values]);

const runtimes: readonly [string, () => Promise<Runtime>][] = [
  ["CPU", async () => cpuRuntime()],
  ["CPU without passes", async () => cpuRuntime({ passes: [] })],
  ...(await testTiers()).map((tier): [string, () => Promise<Runtime>] => [
    `GPU, ${tier}`,
    async () => gpuRuntime(await requestTestDevice({ tier })),
  ]),
];

describe.each(runtimes)("host ops, %s", (_, open) => {
  test("see what was computed before them, and what follows sees their results", async () => {
    const runtime = await open();
    const { weight, statistics, step } = program(runtime);
    const losses: Tensor[] = [];
    let w = [1, 2, 3, 4];
    const expected: number[] = [];
    for (const number of [1, 2, 3]) {
      losses.push(await runtime.step(step(number)));
      const x = [number, 1, 2, 3].map((each, i) => each * (w[i] as number));
      expected.push(x.reduce((a, b) => a + b));
      w = w.map((each, i) => each + 2 * ((x[i] as number) + 1) + 30 * (x[i] as number));
    }
    expect(await valuesOf([...losses, weight, statistics])).toEqual([
      ...expected.map((each) => [each]),
      w,
      [5.25],
    ]);
  });

  test("are called one at a time, while later steps are recorded", async () => {
    const runtime = await open();
    const { weight, step } = program(runtime);
    await runtime.step(step(1));
    await runtime.flush();
    const log: string[] = [];
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const logged =
      (name: string): HostFunction =>
      async () => {
        log.push(`${name} begins`);
        await held;
        log.push(`${name} ends`);
      };
    for (const number of [1, 2])
      await runtime.step(step(number, logged(`${number}a`), logged(`${number}b`)));
    log.push("recorded");
    release();
    await weight.toArray();
    expect(log.filter((each) => each !== "1a begins")).toEqual([
      "recorded",
      ...["1a ends", "1b begins", "1b ends"],
      ...["2a begins", "2a ends", "2b begins", "2b ends"],
    ]);
  });

  test("that fail leave the state as it was, and end the runtime with a typed error", async () => {
    const runtime = await open();
    const { weight, statistics, step } = program(runtime);
    await runtime.step(step(1));
    const before = await valuesOf([weight, statistics]);
    const cause = new Error("the link is down");
    const refusing: HostFunction = async () => {
      throw cause;
    };
    const loss = await runtime.step(step(2, times(2), refusing));
    const error = await runtime.flush().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(HostOpError);
    expect(error).toMatchObject({ op: "exchange", cause, name: "HostOpError" });
    expect(await valuesOf([weight, statistics])).toEqual(before);
    await expect(loss.toArray()).rejects.toBe(error);
    await expect(runtime.step(step(3))).rejects.toBe(error);
  });

  test("that pass on a changed state and fail say that it has changed", async () => {
    const runtime = await open();
    const weight = runtime.variable([1, 2], [2]);
    const bindings = [{ name: "x", access: "readwrite" }] as const;
    const passOn = defineHostOp({ name: "pass on", bindings, isFinal: true });
    const failing: HostFunction = () => Promise.reject(new Error("the link is down"));
    const step = async (): Promise<void> => {
      await runtime.step(() => {
        weight.assign(weight.mul(2));
        runtime.target.launch(hostLaunch(passOn, [weight.operand()], failing));
      });
      await runtime.flush();
    };
    await expect(step()).rejects.toThrow(
      'host op "pass on" failed: the link is down. Its step has changed parameters and state of this process alone, which cannot go on with others; make another runtime and resume from a checkpoint',
    );
    expect(await valuesOf([weight])).toEqual([[2, 4]]);
  });

  test("read and write several operands of other dtypes", async () => {
    const runtime = await open();
    const x = runtime.variable([1, 2, 3], [3], { dtype: "float16" });
    const result = await runtime.step(() => {
      const y = runtime.tensor([0, 0]).mul(1);
      const double = x.mul(2);
      runtime.target.launch(
        hostLaunch(gather, [double.operand(), y.operand()], async ([from, to]) => {
          expect([...(from ?? [])]).toEqual([0, 0x40, 0, 0x44, 0, 0x46]);
          floats(to).set([7, 8]);
        }),
      );
      return y.add(1);
    });
    expect([...(await result.toArray())]).toEqual([8, 9]);
  });
});

test("cost a submit and a wait each, and nothing else", async () => {
  const device = await requestTestDevice();
  const runtime = gpuRuntime(device);
  const { weight, step } = program(runtime);
  for (const number of [1, 2]) (await runtime.step(step(number))).dispose();
  await runtime.flush();
  for (const number of [3, 4]) {
    const before = device.counters.snapshot();
    const loss = await runtime.step(step(number));
    await runtime.flush();
    expect(device.counters.since(before)).toMatchObject({
      ...{ submits: 3, exchangeWaits: 2, hostWaits: 0 },
      ...{ buffersCreated: 0, bindGroupsCreated: 0 },
    });
    loss.dispose();
  }
  expect(runtime.lastPlan?.hostOps.map(({ awaitedAt }) => awaitedAt)).toHaveLength(2);
  await weight.toArray();
});

test("of a device that is destroyed meanwhile reject the step with its loss", async () => {
  const device = await requestDevice({ label: "to be lost" });
  const runtime = gpuRuntime(device);
  const { step } = program(runtime);
  const stepping = runtime.step(step(1, async () => device.destroy()));
  await expect(stepping.then(() => runtime.flush())).rejects.toThrow("was destroyed");
});

test("are refused outside of runtimes", () => {
  const weight: Variable = cpuRuntime().variable([1], [1]);
  const launch = hostLaunch(exchange, [weight.operand()], async () => {});
  expect(() => launch.kernel.reference([], {})).toThrow("launch it on the target of a runtime");
});
