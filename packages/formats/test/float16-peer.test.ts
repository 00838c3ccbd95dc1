import { f16round, getFloat16, setFloat16 } from "@petamoriken/float16";
import { expect, test, vi } from "vitest";
import { float16 } from "../src/index.js";
import { step } from "./samples.js";

// Sweeps take their time where other runs share the processor.
vi.setConfig({ testTimeout: 300_000 });

const view = new DataView(new ArrayBuffer(4));

const codeOf = (value: number): number => {
  setFloat16(view, 0, value);
  return view.getUint16(0);
};

/** The float32 whose bit pattern lies `by` further. */
function float32Beside(value: number, by: number): number {
  view.setFloat32(0, value);
  view.setUint32(0, view.getUint32(0) + by);
  return view.getFloat32(0);
}

test("all 65,536 codes decode as @petamoriken/float16 decodes them", () => {
  const mismatches: number[] = [];
  for (let code = 0; code < 65536; code++) {
    view.setUint16(0, code);
    if (!Object.is(float16.decode(code), getFloat16(view, 0))) mismatches.push(code);
  }
  expect(mismatches).toEqual([]);
});

test("float32 and float64 inputs at and around every number and every middle round as there", () => {
  const mismatches: number[] = [];
  for (let code = 0; code < 0x7c00; code++) {
    const value = float16.decode(code);
    const middle = value + float16.ulp(value) / 2;
    const points = [value, middle, step(middle, -1n), step(middle, 1n)];
    for (const by of [-2, -1, 1, 2]) points.push(float32Beside(middle, by));
    points.push(float32Beside(value, 1));
    for (const x of points) {
      if (float16.encode(x) !== codeOf(x) || float16.encode(-x) !== codeOf(-x)) mismatches.push(x);
    }
  }
  expect(mismatches.slice(0, 20)).toEqual([]);
});

test("float32 inputs all over their range round as there", () => {
  const bits = new Uint32Array(1);
  const number = new Float32Array(bits.buffer);
  const mismatches: number[] = [];
  // A prime stride meets every exponent and every kind of lower bits.
  for (let pattern = 0; pattern < 2 ** 32; pattern += 10007) {
    bits[0] = pattern;
    const x = number[0] as number;
    // The peer stores a NaN with whatever sign the engine shows it.
    const sameCode = Number.isNaN(x) || float16.encode(x) === codeOf(x);
    if (!sameCode || !Object.is(float16.round(x), f16round(x))) mismatches.push(x);
  }
  expect(mismatches.slice(0, 20)).toEqual([]);
});
