/**
 * A promise of the product: conversions between float32 and 16-bit storage have the same bits on a GPU, on every tier, as in
 * TypeScript. Shown for the WGSL that `@halfstep/formats` publishes, and for the loads, stores and folded casts of kernels.
 */
import {
  type Binding,
  bytesPerElement,
  type DeviceEncoder,
  type DType,
  type HalfDType,
  type Kernel,
} from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { bfloat16, decodeArray, encodeArray, type FloatFormat, float16 } from "@halfstep/formats";
import {
  decode4Bfloat16,
  decode4Float16,
  decodeBfloat16,
  decodeFloat16,
  encode4Bfloat16,
  encode4Float16,
  encodeBfloat16,
  encodeFloat16,
} from "@halfstep/formats/wgsl";
import { describe, expect, it } from "vitest";
import { defineKernel, elementwise, identity, linearMain, linearWorkgroups } from "../src/index.js";

const formats: readonly FloatFormat[] = [float16, bfloat16];

const published = {
  float16: {
    decode: decodeFloat16,
    decode4: decode4Float16,
    encode: encodeFloat16,
    encode4: encode4Float16,
  },
  bfloat16: {
    decode: decodeBfloat16,
    decode4: decode4Bfloat16,
    encode: encodeBfloat16,
    encode4: encode4Bfloat16,
  },
};

const codes = Uint16Array.from({ length: 65_536 }, (_, code) => code);

/** Float32 patterns: every upper half with the lower halves that decide rounding, and pseudo-random ones in between. */
const patterns = (() => {
  // Midpoints of both formats and their neighbours; for float16 the last 13 bits decide, for subnormal results more.
  const lower = [0, 1, 0x0fff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001, 0xefff, 0xffff];
  const words = new Uint32Array(65_536 * 15);
  let at = 0;
  let state = 0x12345678;
  for (let upper = 0; upper < 65_536; upper++) {
    for (const half of lower) words[at++] = (upper << 16) | half;
    while (at % 15 !== 0) {
      state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5;
      words[at++] = (upper << 16) | (state >>> 16);
    }
  }
  return words;
})();

const floats = new Float32Array(patterns.buffer);

const bitsOf = (values: Float32Array): Uint32Array =>
  new Uint32Array(values.buffer, values.byteOffset, values.length);

const lanes = ["x", "y", "z", "w"];

const hex = (word: number | undefined): string => `0x${(word ?? 0).toString(16)}`;

/** Inputs whose results differ: a few in words, and how many. */
function differences(
  inputs: ArrayLike<number>,
  got: ArrayLike<number>,
  want: ArrayLike<number>,
): readonly string[] {
  expect([got.length, want.length]).toEqual([inputs.length, inputs.length]);
  const found: string[] = [];
  let count = 0;
  for (let i = 0; i < want.length; i++)
    if (got[i] !== want[i] && count++ < 5)
      found.push(`${hex(inputs[i])} gives ${hex(got[i])} instead of ${hex(want[i])}`);
  return count > 5 ? [...found, `${count} of ${want.length} in all`] : found;
}

/**
 * Float32 patterns with all NaNs made one: loads of half storage use conversions of the hardware, which are exact, but may
 * set a NaN's quiet bit or drop its payload.
 */
const withOneNan = (words: Uint32Array): Uint32Array =>
  words.map((word) => ((word & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : word));

/** A kernel of 32-bit words that runs `statement` for each quad `index` of its result `y`. */
const wordKernel = (name: string, functions: string, statement: string): Kernel =>
  defineKernel({
    name,
    bindings: [
      { name: "x", access: "read", dtypes: ["uint32"] },
      { name: "y", access: "write", dtypes: ["uint32"] },
    ],
    scalars: [{ name: "quads", type: "u32" }],
    body: () =>
      `${functions}${linearMain()}  if (index >= s.quads) { return; }\n  ${statement}\n}\n`,
    workgroups: ({ quads }) => linearWorkgroups(quads as number),
    reference() {
      throw new Error("runs on a GPU only");
    },
  });

type Data = Uint16Array<ArrayBuffer> | Uint32Array<ArrayBuffer>;

describe.each(await testTiers())("conversions, %s tier", (tier) => {
  /** Launches over `x`, which holds `data`, and a result `y` of as many elements, and reads that back. */
  async function run(
    [data, from]: readonly [Data, DType],
    to: DType,
    launch: (target: DeviceEncoder, x: Binding<GPUBuffer>, y: Binding<GPUBuffer>) => void,
    length = data.length,
  ): Promise<ArrayBuffer> {
    const device = await requestTestDevice({ tier });
    const bind = (count: number, dtype: DType): Binding<GPUBuffer> => {
      const buffer = device.allocate(count * bytesPerElement(dtype));
      return { buffer, offset: 0, length: count, dtype };
    };
    const x = bind(data.length, from);
    const y = bind(length, to);
    device.write(x.buffer, 0, data);
    const target = device.encoder();
    launch(target, x, y);
    target.submit();
    const bytes = await device.read(y.buffer, 0, length * bytesPerElement(to));
    device.release(x.buffer);
    device.release(y.buffer);
    return bytes;
  }

  const runWords = async (kernel: Kernel, data: Data, length = data.length): Promise<Uint32Array> =>
    new Uint32Array(
      await run(
        [data, "uint32"],
        "uint32",
        (target, x, y) =>
          target.launch({ kernel, bindings: [x, y], scalars: { quads: length / 4 } }),
        length,
      ),
    );

  const cast = (
    from: readonly [Data, DType],
    to: DType,
    { load, store }: { readonly load?: HalfDType; readonly store?: HalfDType } = {},
  ): Promise<ArrayBuffer> =>
    run(from, to, (target, x, y) => {
      const shape = [x.length];
      const input = { ...x, shape, ...(load && { rounding: load }) };
      target.launch(
        elementwise(identity, [input], { ...y, shape, ...(store && { rounding: store }) }),
      );
    });

  describe.each(formats)("$name", (format) => {
    const dtype = format.name as HalfDType;
    const short = dtype === "float16" ? "f16" : "bf16";
    const functions = published[dtype];
    const wantedCodes = encodeArray(floats, format);
    const wantedBits = bitsOf(decodeArray(codes, format));

    it("decodes all 65,536 codes in published WGSL, one by one and by quads", async () => {
      const one = wordKernel(
        `decode ${short}`,
        functions.decode,
        `let q = load_x(index);
  store_y(index, bitcast<vec4u>(vec4f(${lanes.map((l) => `${short}_bits_to_f32(q.${l})`).join(", ")})));`,
      );
      const words = Uint32Array.from(codes);
      expect(differences(codes, await runWords(one, words), wantedBits)).toEqual([]);

      const four = wordKernel(
        `decode4 ${dtype}`,
        functions.decode4,
        `let q = vec2u(at_x(index * 2u), at_x(index * 2u + 1u));
  store_y(index, bitcast<vec4u>(decode4_${dtype}(q)));`,
      );
      const pairs = new Uint32Array(codes.buffer);
      expect(differences(codes, await runWords(four, pairs, codes.length), wantedBits)).toEqual([]);
    });

    it("encodes a million float32 patterns in published WGSL, one by one and by quads", async () => {
      const one = wordKernel(
        `encode ${short}`,
        functions.encode,
        `let v = bitcast<vec4f>(load_x(index));
  store_y(index, vec4u(${lanes.map((l) => `f32_to_${short}_bits(v.${l})`).join(", ")}));`,
      );
      expect(differences(patterns, await runWords(one, patterns), wantedCodes)).toEqual([]);

      const four = wordKernel(
        `encode4 ${dtype}`,
        functions.encode4,
        `let q = encode4_${dtype}(bitcast<vec4f>(load_x(index)));
  store_y(index, vec4u(q.x & 0xffffu, q.x >> 16u, q.y & 0xffffu, q.y >> 16u));`,
      );
      expect(differences(patterns, await runWords(four, patterns), wantedCodes)).toEqual([]);
    });

    it("loads all 65,536 codes into kernels", async () => {
      const got = new Uint32Array(await cast([codes, dtype], "float32"));
      expect(differences(codes, withOneNan(got), withOneNan(wantedBits))).toEqual([]);
    });

    it("stores a million float32 patterns from kernels", async () => {
      const got = new Uint16Array(await cast([patterns, "float32"], dtype));
      expect(differences(patterns, got, wantedCodes)).toEqual([]);
    });

    it("rounds where a cast was folded into a load or a store", async () => {
      const want = bitsOf(decodeArray(wantedCodes, format));
      for (const rounding of [{ load: dtype }, { store: dtype }]) {
        const got = new Uint32Array(await cast([patterns, "float32"], "float32", rounding));
        expect(differences(patterns, got, want)).toEqual([]);
      }
    });

    it("casts all 65,536 codes to the other format", async () => {
      const other = format === float16 ? bfloat16 : float16;
      const bits = (cast16: Uint16Array): Uint32Array =>
        withOneNan(bitsOf(decodeArray(cast16, other)));
      const got = new Uint16Array(await cast([codes, dtype], other.name as HalfDType));
      const want = encodeArray(decodeArray(codes, format), other);
      expect(differences(codes, bits(got), bits(want))).toEqual([]);
    });
  });
});
