import { type Binding, type DType, MemoryBudgetError } from "@halfstep/device";
import { sum } from "../ops/sums.js";
import type { HostData, Memory } from "../record/storage.js";
import { Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import {
  type ContractTest,
  capture,
  refusal,
  restart,
  same,
  takeKept,
  wordsOf,
} from "./harness.js";
import type { Program } from "./programs.js";

const binding = (
  buffer: Memory,
  length: number,
  dtype: DType = "float32",
  offset = 0,
): Binding<Memory> => ({ buffer, offset, length, dtype });

export const allocatesZeros: ContractTest = async ({ create }) => {
  const runner = await create();
  for (const round of [1, 2, 3])
    for (const bytes of [16, 4096, 256]) {
      const memory = runner.allocate(bytes);
      const words = wordsOf(memory, bytes);
      same(`${bytes} bytes, round ${round}`, await runner.read(words), new Uint32Array(bytes / 4));
      runner.write(words, new Uint32Array(bytes / 4).fill(round));
      runner.release(memory);
    }
};

export const readsInOrder: ContractTest = async ({ create }) => {
  const runner = await create();
  const memory = runner.allocate(16);
  const data = new Float32Array(4);
  const reads = [1, 2, 3].map((value) => {
    runner.write(binding(memory, 4), data.fill(value));
    return runner.read(binding(memory, 4), { wait: value === 2 ? "background" : "host" });
  });
  for (const [i, read] of reads.entries())
    same(`read after write ${i}`, await read, new Float32Array(4).fill(i + 1));
};

/** Each dtype with data that the host writes, and the values as stored. */
const stored: readonly (readonly [DType, HostData, readonly number[]])[] = [
  ["float32", [0.1, -0, 3], [Math.fround(0.1), -0, 3]],
  ["float16", [0.1, 2049, -70000], [0.0999755859375, 2048, Number.NEGATIVE_INFINITY]],
  ["bfloat16", Float64Array.from([0.1, 257, -1]), [0.10009765625, 256, -1]],
  ["float8e4m3fn", [0.3, 500, -1], [0.3125, 448, -1]],
  ["float8e5m2", [0.3, 1e6, -1], [0.3125, 57344, -1]],
  ["int32", [1.7, -5, 2 ** 40], [1, -5, 2 ** 31 - 1]],
  ["uint32", Uint32Array.from([1, 2 ** 32 - 1]), [1, 2 ** 32 - 1]],
];

export const storesEveryDType: ContractTest = async ({ create }) => {
  const runner = await create();
  const memory = runner.allocate(512);
  for (const [dtype, data, expected] of stored) {
    runner.write(binding(memory, data.length, dtype), data);
    runner.write(binding(memory, data.length, dtype, 256), Array.from(data).reverse());
    const at = (offset: number) => runner.read(binding(memory, data.length, dtype, offset));
    same(dtype, await at(0), expected);
    same(`${dtype} from byte 256 on`, await at(256), [...expected].reverse());
  }
};

export const refusesReleased: ContractTest = async ({ create }) => {
  const runner = await create();
  const memory = runner.allocate(256);
  runner.release(memory);
  await refusal("a read of released memory", () => runner.read(binding(memory, 4)));
  await refusal("a write to released memory", () => runner.write(binding(memory, 4), [1, 2, 3, 4]));
  await refusal("a second release", () => runner.release(memory));
};

export const keepsValues: ContractTest = async ({ create }) => {
  const runtime = new Runtime(await create(), {});
  const kept: Tensor[] = [];
  for (let step = 0; step < 4; step++)
    kept.push(await runtime.step(() => runtime.tensor([1, 2, 3]).mul(step).add(1)));
  kept[1]?.dispose();
  for (const [step, tensor] of kept.entries()) {
    if (step === 1) continue;
    const expected = [1, 2, 3].map((x) => x * step + 1);
    same(`what step ${step} returned`, await tensor.toArray(), expected);
  }
};

export const forgets: ContractTest = async ({ create }) => {
  const runtime = new Runtime(await create(), {});
  const total = runtime.variable([0, 0], [2]);
  const step = (): Promise<Tensor> =>
    runtime.step(() => {
      total.assign(total.add(runtime.tensor([1, 2])));
      return total.mul(10);
    });
  const before = await step();
  runtime.emptyCache();
  same("a kept value", await before.toArray(), [10, 20]);
  same("a variable", await total.toArray(), [1, 2]);
  same("a step that runs again", await (await step()).toArray(), [20, 40]);
};

export const forgetsSomePlans: ContractTest = async ({ create }) => {
  const runner = await create();
  const [first, second] = [await capture(runner, row(2)), await capture(runner, row(3))];
  for (const [captured, sum] of [
    [second, 6],
    [first, 4],
    [second, 6],
  ] as const) {
    runner.forget([first.plan]);
    const kept = await takeKept(runner, captured, restart(runner, captured).finish());
    const [values] = kept.map((words) => new Float32Array(Uint32Array.from(words).buffer, 0, 1));
    same("a sum after another plan was forgotten", values ?? [], [sum]);
  }
  runner.forget([first.plan, second.plan]);
};

/** A sum of so many twos. */
const row = (length: number): Program => ({
  name: "a sum",
  open: (runtime) => () => [sum(runtime.tensor(new Float32Array(length).fill(1)).mul(2))],
});

const room = 2 ** 20;

/** A step with a result that does not fit. */
const outerProduct: Program = {
  name: "an outer product",
  open: (runtime) => {
    const column = runtime.variable(new Float32Array(1024).fill(2), [1024, 1]);
    return () => {
      column.assign(column.mul(3));
      return [column.mul(column.reshape([1, 1024]))];
    };
  },
};

/** Passes where memory cannot run out. */
export const respectsBudget: ContractTest = async ({ createWithBudget }) => {
  if (!createWithBudget) return;
  const runner = await createWithBudget(room);
  const tooLarge = await refusal("memory beyond the budget", () => runner.allocate(4 * room));
  assertBudgetError(tooLarge);
  const runtime = new Runtime(runner, {});
  const variable = runtime.variable([1, 2], [2]);
  const step = outerProduct.open(runtime);
  for (let attempt = 0; attempt < 3; attempt++) {
    const error = await refusal("a step beyond the budget", () =>
      runtime.step(() => {
        variable.assign(variable.mul(5));
        return step();
      }),
    );
    assertBudgetError(error);
    same("a variable after a step beyond the budget", await variable.toArray(), [1, 2]);
  }
  const result = await runtime.step(() => variable.add(1));
  same("a step within the budget", await result.toArray(), [2, 3]);
};

/** Passes where memory cannot run out. */
export const abandonsMemory: ContractTest = async ({ createWithBudget }) => {
  if (!createWithBudget) return;
  const runner = await createWithBudget(room);
  const captured = await capture(runner, {
    name: "a large result",
    open: (runtime) => () => [runtime.tensor(new Float32Array(room / 16)).add(1)],
  });
  for (let i = 0; i < 20; i++) restart(runner, captured).abandon();
  const kept = restart(runner, captured).finish();
  const [values] = await takeKept(runner, captured, kept);
  same("a run after others were abandoned", values?.slice(0, 1) ?? [], [0x3f800000]);
};

function assertBudgetError(error: unknown): void {
  if (!(error instanceof MemoryBudgetError))
    throw new Error(`expected a MemoryBudgetError, found ${error}`);
}
