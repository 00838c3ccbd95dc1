import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { controlLength, launchUpdate, sgdRule } from "@halfstep/kernels/optimizers";
import { expect, test } from "vitest";
import {
  cpuRuntime,
  type FlatVariables,
  flatten,
  gpuRuntime,
  linear,
  type Plan,
  type Runtime,
  type Tensor,
  type Variable,
} from "../src/index.js";
import { allPasses } from "../src/internals.js";

const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + i * 12.9898) * 0.5);

/** Two layers whose parameters lie in one flat buffer, and plain gradient descent on it as optimizers launch theirs. */
class Training {
  readonly runtime: Runtime;
  readonly parameters: readonly [Variable, Variable, Variable];
  readonly #flat: FlatVariables;
  readonly #control;

  constructor(runtime: Runtime, isFlat = true) {
    this.runtime = runtime;
    const parameter = (shape: readonly number[], seed: number): Variable =>
      runtime.variable(
        numbers(
          shape.reduce((a, b) => a * b, 1),
          seed,
        ),
        shape,
        {
          requiresGrad: true,
          name: `parameter ${seed}`,
        },
      );
    this.parameters = [parameter([12, 9], 1), parameter([12], 2), parameter([5, 12], 3)];
    // Without `isFlat`, the buffer has copies and its parameters are not flat: casts are folded as before.
    this.#flat = flatten(this.parameters);
    if (!isFlat) this.#flat.values.halfCopies = undefined;
    const buffer = runtime.target.allocateResident(controlLength * 4);
    this.#control = { buffer, offset: 0, length: controlLength, dtype: "float32" } as const;
    this.setApplies(true);
  }

  setApplies(applies: boolean): void {
    const words = new Float32Array(controlLength);
    words.set([Number(applies), 1, 2 ** -4]);
    this.runtime.target.write(this.#control, words);
  }

  forward(): Tensor {
    const [first, bias, second] = this.parameters;
    const x = this.runtime.tensor(numbers(4 * 9, 9), [4, 9]);
    return autocast({ dtype: "float16" }, () => linear(linear(x, first, bias).tanh(), second));
  }

  update(): void {
    const { values, gradients, segments } = this.#flat;
    const last = segments.at(-1) as (typeof segments)[number];
    const length = last.offset + 60;
    const range = { firstSegment: 0, endSegment: 3, firstChunk: 0, endChunk: 0 };
    // Two ranges, as if a parameter between them had no gradient.
    const ranges = [
      { ...range, offset: 0, length: 108 },
      { ...range, offset: last.offset, length: 60 },
    ];
    launchUpdate(
      this.runtime.target,
      sgdRule({ momentum: false }),
      {
        values: { buffer: values, offset: 0, length, dtype: "float32" },
        gradients: { buffer: gradients, offset: 0, length, dtype: "float32" },
        control: this.#control,
        parameters: "inPlace",
        storage: {},
        state: {},
        table: () => {
          throw new Error("plain descent has no totals");
        },
      },
      ranges,
      {
        scalars: { momentum: 0, oneMinusDampening: 1, nesterov: 0, weightDecay: 0 },
        maximize: false,
      },
    );
  }

  async step(): Promise<Plan> {
    const loss = await this.runtime.step(() => {
      const loss = this.forward().to("float32").square().mean();
      loss.backward();
      this.update();
      for (const parameter of this.parameters) parameter.zeroGrad();
      return loss;
    });
    loss.dispose();
    return this.runtime.lastPlan as Plan;
  }

  /** The model's results and its parameters. */
  async state(): Promise<string> {
    using y = await this.runtime.step(() => this.forward());
    const arrays = await Promise.all([y, ...this.parameters].map((tensor) => tensor.toArray()));
    return arrays.map((array) => array.join()).join("\n");
  }
}

const kernelNames = ({ launches }: Plan): string[] =>
  launches.map(({ launch: { kernel } }) => `${kernel.name} ${kernel.variant}`);

test("steps read copies of the parameters, which the update stores", async () => {
  const training = new Training(cpuRuntime());
  const first = await training.step();
  const second = await training.step();
  expect([first.statistics.casts, second.statistics.casts]).toEqual([0, 0]);
  expect(second).toBe(first);
  expect(second.statistics.recordedCasts).toBeGreaterThan(1);
  expect(kernelNames(second).filter((name) => name.startsWith("update"))).toEqual([
    "update sgd 0 copied float32",
    "update sgd 0 copied float32",
  ]);
  // No launch rounds a parameter while it loads it.
  const weights = second.launches.flatMap(({ launch: { kernel, bindings } }) =>
    bindings.filter(
      ({ buffer, rounding }, b) =>
        buffer.kind === "resident" && rounding && kernel.bindings[b]?.access === "read",
    ),
  );
  expect(weights).toEqual([]);
});

test.each([
  ["CPU", async (passes: typeof allPasses) => cpuRuntime({ passes })],
  ["GPU", async (passes: typeof allPasses) => gpuRuntime(await requestTestDevice(), { passes })],
] as const)("they change no bit: %s", async (_, open) => {
  const results = new Set<string>();
  for (const [passes, isFlat] of [
    [allPasses, true],
    [[], true],
    [allPasses, false],
  ] as const) {
    const training = new Training(await open(passes), isFlat);
    for (let step = 0; step < 3; step++) await training.step();
    training.setApplies(false);
    await training.step();
    training.setApplies(true);
    await training.step();
    results.add(await training.state());
  }
  expect(results.size).toBe(1);
});

test("parameters that change otherwise are rounded anew", async () => {
  const [training, other] = [new Training(cpuRuntime()), new Training(cpuRuntime(), false)];
  const changes: readonly ((t: Training) => unknown)[] = [
    ({ parameters: [first] }) => first.assign(first.mul(0.5)),
    ({ runtime, parameters: [first] }) => runtime.step(() => first.assign(first.add(0.25))),
    ({ runtime, parameters: [first] }) =>
      runtime.target.write(first.operand(), numbers(first.size, 77)),
    // A dropped step has no effect.
    (t) =>
      t.runtime
        .step(() => {
          t.forward();
          t.parameters[0].assign(t.parameters[0].mul(3));
          t.update();
          throw new Error("dropped");
        })
        .catch(() => undefined),
    (t) => t.runtime.dryRun(() => void t.forward()),
    // Read, changed and read again within one step.
    (t) =>
      t.runtime.step(() => {
        const before = t.forward();
        t.parameters[2].assign(t.parameters[2].mul(2));
        const loss = before.to("float32").add(t.forward().to("float32")).square().mean();
        loss.backward();
        t.update();
        for (const parameter of t.parameters) parameter.zeroGrad();
      }),
  ];
  const states: [string, string][] = [];
  for (const change of changes) {
    for (const t of [training, other]) {
      await t.step();
      await change(t);
    }
    states.push([await training.state(), await other.state()]);
  }
  expect(states.map(([mine]) => mine)).toEqual(states.map(([, theirs]) => theirs));
  expect(new Set(states.map(([mine]) => mine)).size).toBe(states.length);
});

test("other numbers are copied when a second step reads them unchanged", async () => {
  const runtime = cpuRuntime();
  const [a, b] = [numbers(12, 1), numbers(12, 2)].map((values) =>
    runtime.variable(values, [3, 4]),
  ) as [Variable, Variable];
  const results: string[] = [];
  const roundings: number[] = [];
  for (let step = 0; step < 4; step++) {
    using y = await runtime.step(() => {
      const y = autocast({ dtype: "bfloat16" }, () => linear(a, b));
      b.assign(b.mul(-1));
      return y.to("float32").abs();
    });
    results.push((await y.toArray()).join());
    const launches = runtime.lastPlan?.launches ?? [];
    roundings.push(
      launches.flatMap(({ launch }) =>
        launch.bindings.filter(({ buffer, rounding }) => buffer.kind === "resident" && rounding),
      ).length,
    );
  }
  // Of a and b first, then of b alone, which every step changes.
  expect(roundings).toEqual([2, 1, 1, 1]);
  expect(new Set(results).size).toBe(1);
  runtime.target.write(a.operand(), numbers(12, 3));
  using fresh = await runtime.step(() => autocast({ dtype: "bfloat16" }, () => linear(a, b)));
  expect((await fresh.toArray()).join()).not.toBe(results[0]);
});

test("copies that nobody reads any more are not kept", async () => {
  const training = new Training(cpuRuntime());
  await training.step();
  const names: string[] = [];
  for (let step = 0; step < 12; step++) {
    await training.runtime.step(() => training.update());
    names.push(...kernelNames(training.runtime.lastPlan as Plan));
  }
  expect(names[0]).toBe("update sgd 0 copied float32");
  expect(names.at(-1)).toBe("update sgd 0 inPlace float32");
});
