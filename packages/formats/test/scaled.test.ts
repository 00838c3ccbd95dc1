import { expect, test } from "vitest";
import {
  decodeArray,
  decodeMx,
  decodeNvfp4,
  decodeScaled,
  encodeMx,
  encodeNvfp4,
  encodeScaled,
  type FloatFormat,
  formatOf,
  type MxElement,
  type MxRule,
} from "../src/index.js";
import json from "./golden/scaled.json" with { type: "json" };

interface Encoded {
  readonly columns: number;
  readonly scales: string;
  readonly codes: string;
}

interface Golden {
  readonly values: string;
  readonly mx: readonly (Encoded & { format: MxElement; rule: MxRule })[];
  readonly mxRows: readonly (Encoded & { format: MxElement; rule: MxRule })[];
  readonly nvfp4: readonly (Encoded & { tensorScale: number })[];
  readonly scaled: readonly (Encoded & {
    format: "float8e4m3fn" | "float8e5m2";
    powerOfTwo: boolean;
  })[];
}

const golden = json as Golden;
const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "base64"));
const floats = (text: string): Float32Array => new Float32Array(bytes(text).buffer);
const values = floats(golden.values);

/** Decoding has one rounding: the exact product of code and scale, to float32. */
const products = (
  codes: Uint8Array,
  format: FloatFormat,
  columns: number,
  blockSize: number,
  scale: (block: number) => number,
): Float32Array => {
  const perRow = Math.ceil(columns / blockSize);
  return decodeArray(codes, format).map(
    (element, i) =>
      element * scale(Math.floor(i / columns) * perRow + Math.floor((i % columns) / blockSize)),
  );
};

test.each([...golden.mx, ...golden.mxRows])("MX $format, $rule, rows of $columns", (expected) => {
  const { columns, rule } = expected;
  const format = formatOf(expected.format);
  const codes = bytes(expected.codes);
  const scales = bytes(expected.scales);
  const mx = encodeMx(values.subarray(0, codes.length), format, { columns, rule });
  expect(mx).toEqual({ format, codes, scales, columns });
  const numbers = products(codes, format, columns, 32, (b) => 2 ** ((scales[b] as number) - 127));
  expect(decodeMx(mx)).toEqual(numbers);
});

test.each(golden.nvfp4)("NVFP4, rows of $columns", ({ columns, tensorScale, ...expected }) => {
  const codes = bytes(expected.codes);
  const scales = bytes(expected.scales);
  const nvfp4 = encodeNvfp4(values.subarray(0, codes.length), { columns });
  expect(nvfp4).toEqual({ codes, scales, tensorScale, columns });
  const scaleFormat = formatOf("float8e4m3fn");
  const numbers = products(
    codes,
    formatOf("float4e2m1fn"),
    columns,
    16,
    (block) => scaleFormat.decode(scales[block] as number) * tensorScale,
  );
  expect(decodeNvfp4(nvfp4)).toEqual(numbers);
});

test.each(golden.scaled)("$format, rows of $columns, powerOfTwo $powerOfTwo", (expected) => {
  const { columns, powerOfTwo } = expected;
  const format = formatOf(expected.format);
  const codes = bytes(expected.codes);
  const scales = floats(expected.scales);
  const scaled = encodeScaled(values, format, { columns, powerOfTwo });
  expect(scaled).toEqual({ format, codes, scales, columns });
  const numbers = products(codes, format, columns, columns, (row) => scales[row] as number);
  expect(decodeScaled(scaled)).toEqual(numbers);
});
