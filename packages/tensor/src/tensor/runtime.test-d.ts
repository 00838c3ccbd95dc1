import { expectTypeOf, test } from "vitest";
import type { HostData, Runtime, Tensor, Variable } from "../index.js";

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
