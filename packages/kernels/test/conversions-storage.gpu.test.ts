/**
 * A promise of the product: what kernels load and store has the same bits on a GPU, on every tier, as in TypeScript, and so
 * have the casts that are folded into their loads and stores.
 */
import type { Binding, DType, HalfDType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { bfloat16, decodeArray, encodeArray, float16 } from "@halfstep/formats";
import { bytesFor } from "@halfstep/formats/dtypes";
import { describe, expect, it } from "vitest";
import { elementwise, identity } from "../src/index.js";
import { bitsOf, codes16, differences, floats, isNaNBits, patterns } from "./conversions.js";

const formats = [float16, bfloat16];

/**
 * Float32 patterns with all NaNs made one: loads of half storage use conversions of the hardware, which are exact, but may
 * set a NaN's quiet bit or drop its payload.
 */
const withOneNaN = (words: Uint32Array): Uint32Array =>
  words.map((word) => (isNaNBits(word) ? 0x7fc00000 : word));

type Data = Uint16Array<ArrayBuffer> | Uint32Array<ArrayBuffer>;

describe.each(await testTiers())("conversions of storage, %s tier", (tier) => {
  /** Copies elements from one storage to another. */
  async function cast(
    [data, from]: readonly [Data, DType],
    to: DType,
    { load, store }: { readonly load?: HalfDType; readonly store?: HalfDType } = {},
  ): Promise<ArrayBuffer> {
    const device = await requestTestDevice({ tier });
    const shape = [data.length];
    const bind = (dtype: DType): Binding<GPUBuffer> => {
      const buffer = device.allocate(bytesFor(dtype, data.length));
      return { buffer, offset: 0, length: data.length, dtype };
    };
    const x = bind(from);
    const y = bind(to);
    device.write(x.buffer, 0, data);
    const target = device.encoder();
    const input = { ...x, shape, ...(load && { rounding: load }) };
    const output = { ...y, shape, ...(store && { rounding: store }) };
    target.launch(elementwise(identity, [input], output));
    target.submit();
    const bytes = await device.read(y.buffer, 0, bytesFor(to, data.length));
    device.release(x.buffer);
    device.release(y.buffer);
    return bytes;
  }

  describe.each(formats)("$name", (format) => {
    const dtype = format.name as HalfDType;
    const wantedCodes = encodeArray(floats, format);

    it("loads all 65,536 codes into kernels", async () => {
      const got = new Uint32Array(await cast([codes16, dtype], "float32"));
      const want = bitsOf(decodeArray(codes16, format));
      expect(differences(codes16, withOneNaN(got), withOneNaN(want))).toEqual([]);
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
        withOneNaN(bitsOf(decodeArray(cast16, other)));
      const got = new Uint16Array(await cast([codes16, dtype], other.name as HalfDType));
      const want = encodeArray(decodeArray(codes16, format), other);
      expect(differences(codes16, bits(got), bits(want))).toEqual([]);
    });
  });
});
