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
  encodeArray,
  type FloatFormat,
  float4e2m1fn,
  float8e4m3fn,
  float8e5m2,
  float16,
  joinFloat32Array,
  roundArray,
  splitFloat32Array,
} from "@halfstep/formats";
import { philox4x32 } from "@halfstep/formats/philox";
import * as wgsl from "@halfstep/formats/wgsl";
import { describe, expect, it } from "vitest";
import { defineKernel, linearMain, linearWorkgroups } from "../src/kernel.js";
import { bitsOf, differences, floats, isNaNBits, patterns } from "./conversions.js";

/** A format, and what its functions are called. */
interface Published {
  readonly format: FloatFormat;
  /** In names of functions of one element. */
  readonly id: string;
  /** Of encoders. */
  readonly suffixes: readonly string[];
  /** True where there is neither infinity nor NaN, so that all encoders saturate. */
  readonly mustSaturate?: boolean;
  /** True where there is a function that encodes and decodes at once. */
  readonly rounds?: boolean;
}

const plain = ["", "_stochastic"];
const saturating = [...plain, "_saturate", "_saturate_stochastic"];
const published: readonly Published[] = [
  { format: float16, id: "f16", suffixes: plain, rounds: true },
  { format: bfloat16, id: "bf16", suffixes: plain, rounds: true },
  { format: float8e4m3fn, id: "f8e4m3fn", suffixes: saturating },
  { format: float8e5m2, id: "f8e5m2", suffixes: saturating },
  { format: float4e2m1fn, id: "f4e2m1fn", suffixes: plain, mustSaturate: true },
];

const isStochastic = (suffix: string): boolean => suffix.endsWith("_stochastic");

/** What TypeScript is asked for the function with this suffix. */
const optionsOf = ({ mustSaturate }: Published, suffix: string): EncodeOptions => ({
  saturate: mustSaturate || suffix.startsWith("_saturate"),
  ...(isStochastic(suffix) && { rounding: "stochastic" }),
});

const seed = 0x12_3456_9abc_def0;
const offset = 0x0b_cdef_8765_4321;
const halves = (value: number): [number, number] => [value >>> 0, Math.floor(value / 2 ** 32)];
const vector = (value: number): string =>
  halves(value)
    .map((half) => `${half}u`)
    .join(", ");

const lanes = ["x", "y", "z", "w"];
const perLane = (expression: (lane: string) => string): string =>
  `vec4u(${lanes.map(expression).join(", ")})`;

/** A kernel over quads of words `x`: `statements` for quad `index` store `slots` quads of `y` from `at` on. */
const wordKernel = (name: string, functions: string, slots: number, statements: string): Kernel =>
  defineKernel({
    name,
    bindings: [
      { name: "x", access: "read", dtypes: ["uint32"] },
      { name: "y", access: "write", dtypes: ["uint32"] },
    ],
    scalars: [
      { name: "quads", type: "u32" },
      { name: "encoded", type: "u32" },
      { name: "raised", type: "u32" },
    ],
    body: () => `${functions}${linearMain()}  if (index >= s.quads) { return; }
  let x = load_x(index);
  let at = index * ${slots}u;
${statements}}
`,
    workgroups: ({ quads }) => linearWorkgroups(quads as number),
    reference() {
      throw new Error("runs on a GPU only");
    },
  });

const slotsOf = ({ suffixes, rounds }: Published): number => suffixes.length + (rounds ? 1 : 0);

/**
 * The first `s.encoded` quads are float32 patterns. Each encoder has a slot of words: the low half is the code by the function
 * of one element, the high half the code by that of quads. The random bits are those of Philox, with `s.raised` set. The other
 * quads are codes, stored as both decoders decode them.
 */
function conversionKernel(of: Published): Kernel {
  const { format, id, suffixes, rounds } = of;
  const { name, bits } = format;
  const functions = Object.values(wgsl).filter(
    (code) => code.includes(`4_${name}`) || code.includes(`${id}_bits`),
  );
  const shifts = [0, 1, 2, 3].map((i) => `${(i * bits) % 32}u`).join(", ");
  const packed =
    bits === 16
      ? "vec2u(x.x | (x.y << 16u), x.z | (x.w << 16u))"
      : `dot(x << vec4u(${shifts}), vec4u(1u))`;
  const unpacked = (quad: string): string =>
    `((${bits === 16 ? `${quad}.xxyy` : `vec4u(${quad})`} >> vec4u(${shifts})) & vec4u(${2 ** bits - 1}u))`;
  const encodings = suffixes.map((suffix, slot) => {
    const random = isStochastic(suffix);
    const one = (lane: string): string =>
      `f32_to_${id}_bits${suffix}(v.${lane}${random ? `, random.${lane}` : ""})`;
    return `  let q${slot} = encode4_${name}${suffix}(v${random ? ", random" : ""});
  store_y(at + ${slot}u, ${perLane(one)} | (${unpacked(`q${slot}`)} << vec4u(16u)));
`;
  });
  const rounding = `  store_y(at + ${suffixes.length}u, bitcast<vec4u>(round4_${name}(v)));\n`;
  return wordKernel(
    `conversions ${name}`,
    functions.join("") + wgsl.philox4x32,
    slotsOf(of),
    `  if (index >= s.encoded) {
    store_y(at, bitcast<vec4u>(vec4f(${lanes.map((lane) => `${id}_bits_to_f32(x.${lane})`).join(", ")})));
    store_y(at + 1u, bitcast<vec4u>(decode4_${name}(${packed})));
    return;
  }
  let v = bitcast<vec4f>(x);
  let random = philox4x32(vec4u(index, 0u, ${vector(offset)}), vec2u(${vector(seed)})) | vec4u(s.raised);
${encodings.join("")}${rounds ? rounding : ""}`,
  );
}

const tiers = await testTiers();
type Tier = (typeof tiers)[number];
type Words = Uint32Array<ArrayBuffer>;

/** What `kernel` stores for the words `x`: the words of each slot. */
async function run(
  tier: Tier,
  kernel: Kernel,
  x: Words,
  slots: number,
  scalars: { readonly encoded?: number; readonly raised?: number } = {},
): Promise<Words[]> {
  const device = await requestTestDevice({ tier });
  const bind = (length: number) => {
    const buffer = device.allocate(length * 4);
    return { buffer, offset: 0, length, dtype: "uint32" } as const;
  };
  const bindings = [bind(x.length), bind(x.length * slots)] as const;
  device.write(bindings[0].buffer, 0, x);
  const target = device.encoder();
  target.launch({
    kernel,
    bindings,
    scalars: { quads: x.length / 4, encoded: 0, raised: 0, ...scalars },
  });
  target.submit();
  const y = new Uint32Array(await device.read(bindings[1].buffer, 0, x.length * slots * 4));
  for (const { buffer } of bindings) device.release(buffer);
  return Array.from({ length: slots }, (_, slot) =>
    x.map((_, i) => y[((i >> 2) * slots + slot) * 4 + (i & 3)] as number),
  );
}

/** Words of which both halves are the same code. */
const twice = (codes: ArrayLike<number>): Words =>
  // A function as an argument of from() makes it take ten times as long.
  Uint32Array.from(codes).map((code) => code | (code << 16));

describe.each(published)("published WGSL of $format.name", (of) => {
  const { format, suffixes, rounds } = of;
  const kernel = conversionKernel(of);
  const encode = (tier: Tier, x: Words, raised = 0): Promise<Words[]> =>
    run(tier, kernel, x, slotsOf(of), { encoded: x.length / 4, raised });

  it.each(tiers)("decodes every code, one by one and by quads, %s tier", async (tier) => {
    const codes = format.createCodes(2 ** format.bits).map((_, code) => code);
    const want = bitsOf(decodeArray(codes, format));
    const [one, four] = await run(tier, kernel, Uint32Array.from(codes), slotsOf(of));
    expect(differences(codes, one as Words, want)).toEqual([]);
    expect(differences(codes, four as Words, want)).toEqual([]);
  });

  it.each(tiers)("encodes a million patterns as encodeArray does, %s tier", async (tier) => {
    const got = await encode(tier, patterns);
    for (const [slot, suffix] of suffixes.entries()) {
      const options = optionsOf(of, suffix);
      const random = isStochastic(suffix) && { seed, offset };
      const want = encodeArray(floats, format, undefined, { ...options, ...random });
      expect([suffix, ...differences(patterns, got[slot] as Words, twice(want))]).toEqual([suffix]);
    }
    if (rounds) {
      const want = bitsOf(roundArray(floats, format));
      expect(differences(patterns, got.at(-1) as Words, want)).toEqual([]);
    }
  });

  it.each(tiers)("encodes single numbers with the same random bits, %s tier", async (tier) => {
    // A number shows neither sign nor payload of a NaN.
    const sample = patterns.filter((word, i) => i % 31 === 0 && !isNaNBits(word));
    const x = sample.subarray(0, sample.length & ~3);
    const values = new Float32Array(x.slice().buffer);
    // With all bits set but a few, the tiniest fractions of a unit go up.
    for (const raised of [0, 0xfffffff0]) {
      const got = await encode(tier, x, raised);
      for (const [slot, suffix] of suffixes.entries()) {
        const options = optionsOf(of, suffix);
        const want = x.map((_, i) => {
          if (!isStochastic(suffix)) return format.encode(values[i] as number, options);
          const words = philox4x32([i >> 2, 0, ...halves(offset)], halves(seed));
          const bits = ((words[i & 3] as number) | raised) >>> 0;
          return format.encode(values[i] as number, { ...options, bits });
        });
        expect([suffix, ...differences(x, got[slot] as Words, twice(want))]).toEqual([suffix]);
      }
    }
  });

  it.each(tiers)(
    "rounds stochastically without bias, exact numbers never, %s tier",
    async (tier) => {
      const { ulp, finfo, round } = format;
      // Numbers a fraction of a unit from one of the format's, and that one itself.
      const values = [1, -1.5, finfo.max / 2, finfo.smallestNormal, -3 * finfo.smallestSubnormal, 0]
        .map((value) => round(value))
        .flatMap((value) =>
          [0, 2 ** -7, 0.3, 0.5, 0.9375, 1 - 2 ** -7].map(
            (fraction) => value + Math.sign(value || 1) * fraction * ulp(value),
          ),
        );
      const count = 16_384;
      const x = Float32Array.from(
        { length: values.length * count },
        (_, i) => values[i % values.length] as number,
      );
      const got = (await encode(tier, new Uint32Array(x.buffer)))[suffixes.indexOf("_stochastic")];
      const wrong = values.flatMap((_, at) => {
        const value = x[at] as number;
        const low = format.encode(value, { rounding: "towardZero" });
        const fraction = Math.abs(value - format.decode(low)) / ulp(value);
        const counts = [0, 0];
        for (let i = at; i < x.length; i += values.length) {
          const up = (((got as Words)[i] as number) & 0xffff) - low;
          counts[up] = (counts[up] ?? 0) + 1;
        }
        const [stayed = 0, went = 0] = counts;
        const deviation = Math.sqrt(count * fraction * (1 - fraction));
        const isGood =
          stayed + went === count && Math.abs(went - count * fraction) <= 5 * deviation;
        return isGood ? [] : [`${value}: ${went} of ${count} went up and ${stayed} stayed`];
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
    const [one, four, joined, joined4] = await run(tier, kernel, patterns, 4);
    const { codes, remainders } = splitFloat32Array(floats);
    const split = patterns.map((_, i) => (codes[i] as number) | ((remainders[i] as number) << 16));
    expect(differences(patterns, one as Words, split)).toEqual([]);
    expect(differences(patterns, four as Words, split)).toEqual([]);
    // Any two halves are a pair: the patterns give all codes with remainders at and around the middle.
    const pairs = {
      codes: Uint16Array.from(patterns, (word) => word >>> 16),
      remainders: Uint16Array.from(patterns),
    };
    const join = bitsOf(joinFloat32Array(pairs));
    expect(differences(patterns, joined as Words, join)).toEqual([]);
    expect(differences(patterns, joined4 as Words, join)).toEqual([]);
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
    const statement = "  store_y(index, philox4x32(x, load_x(index + 1u).xy));\n";
    const kernel = wordKernel("philox", wgsl.philox4x32, 1, statement);
    const [got] = await run(tier, kernel, Uint32Array.from(inputs.flat()), 1);
    expect(answers.map((_, i) => [...(got as Words).subarray(8 * i, 8 * i + 4)])).toEqual(answers);
  });
});
