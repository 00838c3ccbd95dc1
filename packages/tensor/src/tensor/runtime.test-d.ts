import { autocast } from "@halfstep/autocast";
import { expectTypeOf, test } from "vitest";
import { type HostData, noGrad, type Runtime, type Tensor, type Variable } from "../index.js";

declare const runtime: Runtime;

test("tensors and variables take every array of numbers of at most 32 bits, and of float64", () => {
  const data: HostData[] = [
    ...[new Float32Array(1), new Float64Array(1), new Int32Array(1), new Uint32Array(1)],
    ...[new Int16Array(1), new Uint16Array(1), new Int8Array(1), new Uint8Array(1)],
    ...[new Uint8ClampedArray(1), [1], [1] as const],
  ];
  for (const each of data) {
    expectTypeOf(runtime.tensor(each)).toEqualTypeOf<Tensor>();
    expectTypeOf(runtime.variable(each, [1])).toEqualTypeOf<Variable>();
  }
  expectTypeOf(runtime.tensor(new Uint8Array(4), [2, 2])).toEqualTypeOf<Tensor>();
});

test("memory without a type, 64-bit integers and tensors are no data", () => {
  // @ts-expect-error bytes of no type
  runtime.tensor(new ArrayBuffer(8));
  // @ts-expect-error bytes of no type
  runtime.tensor(new DataView(new ArrayBuffer(8)));
  // @ts-expect-error integers of 64 bits
  runtime.tensor(new BigInt64Array(1));
  // @ts-expect-error a tensor
  runtime.tensor(runtime.zeros([1]));
});

test("steps have their callback's type, and functions may be generic in it", () => {
  expectTypeOf(runtime.step(() => 1)).resolves.toBeNumber();
  expectTypeOf(runtime.step(() => ({ loss: runtime.zeros([]) }))).resolves.toEqualTypeOf<{
    loss: Tensor;
  }>();
  const run = <T>(fn: () => T) =>
    runtime.step(() => noGrad(() => autocast({ dtype: "float16" }, fn)));
  expectTypeOf(run(() => "a")).resolves.toBeString();
  const shown = <T>(fn: () => T) => [runtime.dryRun(fn), runtime.plan(fn), runtime.prepare(fn)];
  expectTypeOf(shown).toBeFunction();
});

test("callbacks that end later are refused", () => {
  // @ts-expect-error an async callback
  void runtime.step(async () => 1);
  // @ts-expect-error perhaps a promise
  void runtime.step((): number | Promise<number> => 1);
  // @ts-expect-error a generator
  void runtime.step(function* () {});
  // @ts-expect-error an async callback
  runtime.dryRun(async () => 1);
  // @ts-expect-error an async callback
  runtime.plan(async () => {});
  // @ts-expect-error an async callback
  void runtime.prepare(async () => {});
  // @ts-expect-error an async callback
  noGrad(async () => 1);
});
