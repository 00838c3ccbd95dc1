/**
 * A promise of the product: the WGSL that `@halfstep/formats` publishes has the same bits on a GPU, on every tier, as its
 * TypeScript. Programs are few, because each costs a compilation: one a format runs all functions of the format.
 */
import type { Kernel } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import {
  bfloat16,
  decodeArray,
  type EncodeOptions,
  type FloatFormat,
  float4e2m1fn,
  float8e4m3fn,
  float8e5m2,
  float16,
  joinFloat32Array,
  splitFloat32Array,
} from "@halfstep/formats";
import { philox4x32 } from "@halfstep/formats/philox";
import * as wgsl from "@halfstep/formats/wgsl";
import { beforeAll, describe, expect, it } from "vitest";
import { defineKernel, linearMain, linearWorkgroups } from "../src/kernel.js";
import { bitsOf, codes16, differences, floats, isNaNBits, patterns } from "./conversions.js";

/** A format and what its functions are called. */
interface Published {
  readonly format: FloatFormat;
  readonly id: string;
  readonly variants: readonly Variant[];
}

/** One encoder, for single elements and for quads. */
interface Variant {
  readonly suffix: "" | "_saturate" | "_stochastic" | "_saturate_stochastic";
  readonly options?: EncodeOptions;
  /** Random bits: those of Philox, or high ones, which send nearly every inexact number up. */
  readonly random?: "any" | "high";
}

const basic = (options?: EncodeOptions): readonly Variant[] => [
  { suffix: "", ...(options && { options }) },
  { suffix: "_stochastic", random: "any", ...(options && { options }) },
  { suffix: "_stochastic", random: "high", ...(options && { options }) },
];
const saturating: readonly Variant[] = [
  { suffix: "_saturate", options: { saturate: true } },
  { suffix: "_saturate_stochastic", random: "high", options: { saturate: true } },
];

const published: readonly Published[] = [
  { format: float16, id: "f16", variants: basic() },
  { format: bfloat16, id: "bf16", variants: basic() },
  { format: float8e4m3fn, id: "f8e4m3fn", variants: [...basic(), ...saturating] },
  { format: float8e5m2, id: "f8e5m2", variants: [...basic(), ...saturating] },
  // Without infinity and NaN there is no other way than to saturate.
  { format: float4e2m1fn, id: "f4e2m1fn", variants: basic({ saturate: true }) },
];

const lanes = ["x", "y", "z", "w"];
const perLane = (expression: (lane: string) => string): string =>
  `vec4u(${lanes.map(expression).join(", ")})`;

const seed = [0x9abcdef0, 0x12345678] as const;
const offset = [0x0fedcba9, 0x00876543] as const;
const pair = ([low, high]: readonly [number, number]): string => `${low}u, ${high}u`;
const highBits = 0xfffffff0;

/** A kernel over quads of words `x`: `statements` for quad `index` store some quads of `y` from `at` on. */
const wordKernel = (
  name: string,
  functions: string,
  quadsStored: number,
  statements: string,
): Kernel =>
  defineKernel({
    name,
    bindings: [
      { name: "x", access: "read", dtypes: ["uint32"] },
      { name: "y", access: "write", dtypes: ["uint32"] },
    ],
    scalars: ["quads", "encoded"].map((scalar) => ({ name: scalar, type: "u32" })),
    body: () => `${functions}${linearMain()}  if (index >= s.quads) { return; }
  let x = load_x(index);
  let at = index * ${quadsStored}u;
${statements}}
`,
    workgroups: ({ quads }) => linearWorkgroups(quads as number),
    reference() {
      throw new Error("runs on a GPU only");
    },
  });

/**
 * The first `s.encoded` quads are float32 patterns: each variant stores words whose low half is the code by the function of
 * one element, and whose high half is the code by that of quads. The other quads are codes, stored as both decoders see them.
 */
function conversionKernel({ format: { name, bits }, id, variants }: Published): Kernel {
  const functions = Object.values(wgsl).filter(
    (code) => code.includes(`4_${name}`) || code.includes(`${id}_bits`),
  );
  const shifts = [0, 1, 2, 3].map((i) => `${(i * bits) % 32}u`).join(", ");
  const packed = (quad: string): string =>
    bits === 16
      ? `vec2u(${quad}.x | (${quad}.y << 16u), ${quad}.z | (${quad}.w << 16u))`
      : `dot(${quad} << vec4u(${shifts}), vec4u(1u))`;
  const unpacked = (quad: string): string =>
    `((${bits === 16 ? `${quad}.xxyy` : `vec4u(${quad})`} >> vec4u(${shifts})) & vec4u(${2 ** bits - 1}u))`;
  const encodings = variants.map(({ suffix, random }, slot) => {
    const one = perLane(
      (lane) => `f32_to_${id}_bits${suffix}(v.${lane}${random ? `, ${random}.${lane}` : ""})`,
    );
    return `  let q${slot} = encode4_${name}${suffix}(v${random ? `, ${random}` : ""});
  store_y(at + ${slot}u, ${one} | (${unpacked(`q${slot}`)} << vec4u(16u)));
`;
  });
  return wordKernel(
    `conversions ${name}`,
    functions.join("") + wgsl.philox4x32,
    variants.length,
    `  if (index >= s.encoded) {
    let q = ${packed("x")};
    store_y(at, bitcast<vec4u>(vec4f(${lanes.map((lane) => `${id}_bits_to_f32(x.${lane})`).join(", ")})));
    store_y(at + 1u, bitcast<vec4u>(decode4_${name}(q)));
    return;
  }
  let v = bitcast<vec4f>(x);
  let any = philox4x32(vec4u(index, 0u, ${pair(offset)}), vec2u(${pair(seed)}));
  let high = any | vec4u(${highBits}u);
${encodings.join("")}`,
  );
}

/** Random bits of as many elements as there are patterns, as every side draws them. */
const randomBits: Uint32Array<ArrayBuffer> = (() => {
  const words = new Uint32Array(patterns.length);
  for (let i = 0; i < words.length; i += 4) words.set(philox4x32([i >> 2, 0, ...offset], seed), i);
  return words;
})();

/** The codes of all patterns in TypeScript. A number does not show sign and payload of a NaN, so they are put together here. */
function encodePatterns(format: FloatFormat, { options, random }: Variant): Uint32Array {
  const { bits, nanEncoding, nanPayload } = format;
  const nan = format.encode(Number.NaN, { saturate: true });
  return patterns.map((word, i) => {
    if (isNaNBits(word)) {
      if (nanEncoding === "none") return nan;
      const payload = nanPayload === "truncated" ? (word >>> 16) & 0x7f : 0;
      return ((word >>> 31) << (bits - 1)) | nan | payload;
    }
    const value = floats[i] as number;
    if (!random) return format.encode(value, options);
    const drawn = randomBits[i] as number;
    const stochastic = random === "high" ? (drawn | highBits) >>> 0 : drawn;
    return format.encode(value, { ...options, rounding: "stochastic", bits: stochastic });
  });
}

const tiers = await testTiers();
type Tier = (typeof tiers)[number];
type Words = Uint32Array<ArrayBuffer>;

/** What `kernel` stores for the words `x`: a list of words for each of the quads that it stores. */
async function run(
  tier: Tier,
  kernel: Kernel,
  x: Words,
  slots: number,
  encoded = 0,
): Promise<readonly Words[]> {
  const device = await requestTestDevice({ tier });
  const bind = (length: number) => {
    const buffer = device.allocate(length * 4);
    return { buffer, offset: 0, length, dtype: "uint32" } as const;
  };
  const bindings = [bind(x.length), bind(x.length * slots)] as const;
  device.write(bindings[0].buffer, 0, x);
  const target = device.encoder();
  target.launch({ kernel, bindings, scalars: { quads: x.length / 4, encoded } });
  target.submit();
  const y = new Uint32Array(await device.read(bindings[1].buffer, 0, x.length * slots * 4));
  for (const { buffer } of bindings) device.release(buffer);
  return Array.from({ length: slots }, (_, slot) =>
    x.map((_, i) => y[((i >> 2) * slots + slot) * 4 + (i & 3)] as number),
  );
}

/** Words of which both halves are the same code. */
const twice = (codes: Uint32Array): Uint32Array => codes.map((code) => code | (code << 16));

const none: Words = new Uint32Array(0);

describe.each(published)("published WGSL of $format.name", (of) => {
  const { format, variants } = of;
  const kernel = conversionKernel(of);
  const codes = Uint32Array.from({ length: 2 ** format.bits }, (_, code) => code);

  const convert = (tier: Tier, floats: Words, codes: Words): Promise<readonly Words[]> => {
    const x = new Uint32Array(floats.length + codes.length);
    x.set(floats);
    x.set(codes, floats.length);
    return run(tier, kernel, x, variants.length, floats.length / 4);
  };

  it.each(tiers)("decodes every code, one by one and by quads, %s tier", async (tier) => {
    const [one, four] = await convert(tier, none, codes);
    const want = bitsOf(decodeArray(codes16.subarray(0, codes.length), format));
    expect(differences(codes, one as Words, want)).toEqual([]);
    expect(differences(codes, four as Words, want)).toEqual([]);
  });

  describe("encodes", () => {
    let wanted: readonly Uint32Array[] = [];
    beforeAll(() => {
      wanted = variants.map((variant) => twice(encodePatterns(format, variant)));
    });

    it.each(tiers)(
      "a million patterns in every way, one by one and by quads, %s tier",
      async (tier) => {
        const got = await convert(tier, patterns, none);
        const found = variants.map(({ suffix }, slot) => [
          suffix,
          differences(patterns, got[slot] as Words, wanted[slot] as Words),
        ]);
        expect(found).toEqual(variants.map(({ suffix }) => [suffix, []]));
      },
    );
  });

  it.each(tiers)(
    "rounds stochastically without bias, exact numbers never, %s tier",
    async (tier) => {
      const { ulp, finfo, round } = format;
      // Numbers that are a fraction of a unit above one of the format's, and some of its own.
      const values = [1, -1.5, finfo.max / 2, finfo.smallestNormal, -3 * finfo.smallestSubnormal, 0]
        .map((value) => round(value))
        .flatMap((value) => {
          const fractions = [0, 2 ** -7, 0.3, 0.5, 0.9375, 1 - 2 ** -7];
          return fractions.map((fraction) => value + Math.sign(value || 1) * fraction * ulp(value));
        });
      const count = 16_384;
      const x = Float32Array.from(
        { length: values.length * count },
        (_, i) => values[i % values.length] as number,
      );
      const got = (await convert(tier, new Uint32Array(x.buffer), none))[1] as Words;
      const wrong = values.flatMap((_, at) => {
        const value = x[at] as number;
        const low = format.encode(value, { rounding: "towardZero" });
        const fraction = Math.abs(value - format.decode(low)) / ulp(value);
        let ups = 0;
        let others = 0;
        for (let i = at; i < got.length; i += values.length) {
          const up = ((got[i] as number) & 0xffff) - low;
          if (up === 1) ups++;
          else if (up !== 0) others++;
        }
        const deviation = Math.sqrt(count * fraction * (1 - fraction));
        const isGood = others === 0 && Math.abs(ups - count * fraction) <= 5 * deviation;
        return isGood ? [] : [`${value}: ${ups} of ${count} went up, ${others} elsewhere`];
      });
      expect(wrong).toEqual([]);
    },
  );
});

describe.each(tiers)("published WGSL besides, %s tier", (tier) => {
  it("splits a million float32 into bfloat16 and remainder, and joins them", async () => {
    const functions = wgsl.splitFloat32 + wgsl.joinFloat32 + wgsl.split4Float32 + wgsl.join4Float32;
    const kernel = wordKernel(
      "remainders",
      functions,
      4,
      `  let v = bitcast<vec4f>(x);
  ${lanes.map((lane) => `let r${lane} = split_f32(v.${lane});`).join("\n  ")}
  store_y(at, ${perLane((lane) => `r${lane}.x | (r${lane}.y << 16u)`)});
  let q = split4_float32(v);
  store_y(at + 1u, vec4u(q.x & 0xffffu, q.x >> 16u, q.y & 0xffffu, q.y >> 16u)
    | vec4u(q.z << 16u, q.z & 0xffff0000u, q.w << 16u, q.w & 0xffff0000u));
  store_y(at + 2u, ${perLane((lane) => `bitcast<u32>(join_f32(x.${lane} >> 16u, x.${lane} & 0xffffu))`)});
  let codes = vec2u((x.x >> 16u) | (x.y & 0xffff0000u), (x.z >> 16u) | (x.w & 0xffff0000u));
  let remainders = vec2u((x.x & 0xffffu) | (x.y << 16u), (x.z & 0xffffu) | (x.w << 16u));
  store_y(at + 3u, bitcast<vec4u>(join4_float32(codes, remainders)));
`,
    );
    const [one, four, joined, joined4] = (await run(tier, kernel, patterns, 4)) as [
      Words,
      Words,
      Words,
      Words,
    ];
    const { codes, remainders } = splitFloat32Array(floats);
    const split = patterns.map((_, i) => (codes[i] as number) | ((remainders[i] as number) << 16));
    expect(differences(patterns, one, split)).toEqual([]);
    expect(differences(patterns, four, split)).toEqual([]);
    // Any two halves are a pair: the patterns give all codes with remainders at and around the middle.
    const halves = {
      codes: Uint16Array.from(patterns, (word) => word >>> 16),
      remainders: Uint16Array.from(patterns),
    };
    const join = bitsOf(joinFloat32Array(halves));
    expect(differences(patterns, joined, join)).toEqual([]);
    expect(differences(patterns, joined4, join)).toEqual([]);
  });

  it("gives the known answers of Philox4x32-10", async () => {
    const all = 0xffffffff;
    // From Random123's kat_vectors: counter, key, and two words to make quads.
    const inputs = [
      [0, 0, 0, 0, 0, 0, 0, 0],
      [all, all, all, all, all, all, 0, 0],
      [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0, 0],
    ];
    const answers = [
      [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
      [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
      [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
    ];
    const kernel = wordKernel(
      "philox",
      wgsl.philox4x32,
      1,
      "  store_y(index, philox4x32(x, load_x(index + 1u).xy));\n",
    );
    const [got] = (await run(tier, kernel, Uint32Array.from(inputs.flat()), 1)) as [Words];
    expect(answers.map((_, i) => [...got.subarray(8 * i, 8 * i + 4)])).toEqual(answers);
  });
});
