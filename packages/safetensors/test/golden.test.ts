import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { dtypes, type SafetensorsDtype } from "../src/dtype.js";
import { readSafetensors, type SafetensorsTensor, writeSafetensors } from "../src/index.js";

const golden = (name: string): Buffer => readFileSync(new URL(`golden/${name}`, import.meta.url));

/** What the reference wrote, and what it read of it: see golden/reference.py. */
const file = new Uint8Array(golden("reference.safetensors"));
const content: {
  readonly metadata: Readonly<Record<string, string>>;
  readonly tensors: Readonly<
    Record<string, { dtype: SafetensorsDtype; shape: number[]; bytes: string }>
  >;
} = JSON.parse(golden("reference.json").toString());

test("reads what the reference wrote", () => {
  const { metadata, tensors } = readSafetensors(file);
  expect({ ...metadata }).toEqual(content.metadata);
  const read = Object.entries(tensors).map(([name, { dtype, shape, data }]) => {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
    return [name, { dtype, shape, bytes }];
  });
  expect(read).toHaveLength(25);
  expect(Object.fromEntries(read)).toEqual(content.tensors);
});

test("every value is the number that was stored", () => {
  const { tensors } = readSafetensors(file);
  const values = (name: string): unknown[] => [...(tensors[name]?.data ?? [])];
  expect(values("model.0.weight")).toEqual([0, -0, 1.5, Infinity, Number.NaN, Math.fround(-1e-8)]);
  expect(values("model.0.bias")).toEqual([3.25]);
  expect(values("double").slice(2, 4)).toEqual([1.5, Infinity]);
  expect(values("half")).toEqual([0, 0x8000, 0x3e00, 0x7c00, 0x7e00, 0x8000]);
  expect(values("brain")).toEqual([0, 0x8000, 0x3fc0, 0x7f80, 0xffff, 0xb22c]);
  expect(values("complex")).toEqual([1, 2, -0, -3.5]);
  expect(values("bool")).toEqual([1, 0, 1]);
  expect(values("i8")).toEqual([-3, -2, -1, 0, 1, 2]);
  expect(values("i64")).toEqual([-3n, -2n, -1n, 0n, 1n, 2n].map((n) => n << 60n));
  expect(values("u16")).toEqual([65535, 1]);
  expect(values("u64")).toEqual([2n ** 63n + 1n]);
  expect(values("f8/e4m3fn")).toEqual([0, 0x80, 0x3c]);
  expect(values("f4")).toEqual([0x21, 0x43]);
  expect(tensors.f4?.shape).toEqual([4]);
  expect(tensors.empty).toEqual({ dtype: "F32", shape: [2, 0, 3], data: new Float32Array(0) });
});

test("writes the bytes of the reference, in whatever order tensors come", () => {
  const tensors = Object.entries(content.tensors).map(([name, { dtype, shape, bytes }]) => {
    const { array } = dtypes[dtype];
    const { buffer } = Uint8Array.from(Buffer.from(bytes, "base64"));
    const data = new array(buffer, 0, buffer.byteLength / array.BYTES_PER_ELEMENT);
    return [name, { dtype, shape, data } as SafetensorsTensor] as const;
  });
  const options = { metadata: content.metadata };
  expect(writeSafetensors(tensors, options)).toEqual(file);
  expect(writeSafetensors(tensors.toReversed(), options)).toEqual(file);
  expect(writeSafetensors(Object.fromEntries(tensors), options)).toEqual(file);
});
