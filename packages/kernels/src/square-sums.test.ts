import type { Binding } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { scalerRule } from "@halfstep/grad-scaler";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mismatches, testValues } from "../test/harness.js";
import { ampPrimitives } from "./amp/amp-primitives.js";
import { cpuTarget } from "./cpu.js";
import { clipGradients } from "./gradients/clip-gradients.js";
import { gradientNorm } from "./gradients/gradient-norm.js";
import { clipPartials, partialsEach } from "./optimizers/clip-partials.js";
import { stepControl } from "./optimizers/step-control.js";
import { allocateResident, deviceTarget, type ResidentTarget } from "./resident-target.js";

type AnyTarget = ResidentTarget<object>;

const targets: readonly (readonly [name: string, make: () => Promise<AnyTarget>])[] = [
  ["CPU", async () => cpuTarget() as AnyTarget],
  ...(await testTiers()).map(
    (tier) =>
      [tier, async () => deviceTarget(await requestTestDevice({ tier })) as AnyTarget] as const,
  ),
];

const inverse = 2 ** -3;
const maxNorm = 0.75;

/** The norms of scaled gradients by every kernel, and the first gradient after clipping. */
async function normsOf(target: AnyTarget, all: readonly Float32Array[]) {
  const floats = (length: number, values?: ArrayLike<number>): Binding<object> => {
    const buffer = allocateResident(target, length * 4);
    const binding = { buffer, offset: 0, length, dtype: "float32" } as const;
    if (values) target.write(binding, values);
    return binding;
  };
  const scale = floats(8, [1 / inverse, inverse, 0, 0, 0, 0, 0, 0]).buffer;
  const gradients = all.map((values) => floats(values.length, values));

  const primitives = ampPrimitives(target);
  const squares = primitives.allocate(primitives.normPartials);
  const [foundInf, lossFlag, outcomes] = [2, 1, 2048].map((n) => primitives.allocate(n)) as [
    object,
    object,
    object,
  ];
  const scaled = gradients.map((x) => ({ ...x, dtype: "float32" as const }));
  const copies = all.map((values) => ({
    ...floats(values.length, values),
    dtype: "float32" as const,
  }));
  const update = (tag: number): void =>
    primitives.updateScale({
      ...{ state: floats(8, [1, 1, 0, 0, 0, 0, 0, 0]).buffer, foundInfs: [foundInf] },
      ...{ rule: scalerRule(), lossFlag, squares, outcomes, tag },
    });
  primitives.check(scaled, foundInf, { state: scale, squares });
  update(1);
  primitives.unscale(copies, scale, foundInf, squares);
  update(2);

  const partials = floats(all.length * partialsEach);
  for (const [part, x] of gradients.entries()) {
    const range = { offset: 0, length: x.length, part };
    target.launch(clipPartials({ x, scale, partials }, range));
  }
  const control = floats(12);
  const clip = { partials, parts: all.length, maxNorm, eps: 0 };
  target.launch(
    stepControl(
      { foundInf, scale, applied: floats(1).buffer, table: floats(4, [1, 1, 1, 1]), control },
      { lr: 1, clip },
    ),
  );

  const norm = floats(2);
  gradientNorm(target, { gradients, scale, norm: norm.buffer }, { maxNorm });
  const largest = floats(2);
  const attributes = { maxNorm, normType: Number.POSITIVE_INFINITY };
  gradientNorm(target, { gradients, scale, norm: largest.buffer }, attributes);
  const [first] = gradients as [Binding<object>];
  target.launch(clipGradients({ x: first, norm: norm.buffer }));

  const [words, outcome] = await Promise.all(
    [control, floatsAt(outcomes, 16)].map((x) => target.read(x)),
  );
  const [coarse, fine] = words as ArrayLike<number> as [number, number];
  return {
    norms: [
      (await target.read(norm))[0] as number,
      words?.[8] as number,
      outcome?.[5] as number,
      outcome?.[13] as number,
    ],
    factors: [(coarse / inverse) * fine, ...(await target.read(norm)).subarray(1)],
    largest: [...(await target.read(largest))],
    clipped: await target.read(first),
  };
}

const floatsAt = (buffer: object, length: number): Binding<object> => ({
  buffer,
  offset: 0,
  length,
  dtype: "float32",
});

/** The norms that differ from float64. */
async function wrongIn(
  target: AnyTarget,
  all: readonly Float32Array[],
): Promise<readonly string[]> {
  const got = await normsOf(target, all);
  const values = all.flatMap((each) => [...each].map((value) => Math.fround(value * inverse)));
  const norm = Math.sqrt(values.reduce((sum, value) => sum + value ** 2, 0));
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const factor = norm <= maxNorm ? 1 : maxNorm / norm;
  const held = Math.fround(norm);
  const near = { relative: 2 ** -19, absolute: 0 };
  // Subnormal numbers have fewer bits.
  const product = { relative: 2 ** -19, absolute: 2 ** -149 };
  const clipped = (all[0] as Float32Array).map((value) => value * factor);
  return [
    ...mismatches(got.norms, [held, held, held, held], near).map((text) => `norms${text}`),
    ...mismatches(got.factors, [factor, Math.fround(factor)], product).map(
      (text) => `factors${text}`,
    ),
    ...mismatches(got.largest, [largest, Math.min(1, maxNorm / (largest + 1e-6))], product),
    ...mismatches(got.clipped, clipped, { relative: 2 ** -18, absolute: 2 ** -125 }),
  ];
}

const noise = (length: number, magnitude: number): Float32Array =>
  testValues(length, length).map((value) => value * magnitude);

const cases: Readonly<Record<string, readonly Float32Array[]>> = {
  "squares overflow": [Float32Array.of(1.5e38, 1.5e38)],
  "squares underflow": [Float32Array.of(1e-30, 1e-30)],
  "many overflow": [noise(70_003, 2 ** 110), noise(5, 2 ** 120)],
  "many underflow": [noise(4_099, 2 ** -90), noise(70_003, 2 ** -80)],
  "one large among small": [noise(4_099, 1e-20).with(4_097, 1e30), noise(7, 1e-25)],
  "one range large, one small": [noise(515, 1e-30), noise(1_027, 1e30)],
  "where large sums begin": [noise(257, 2 ** 57), noise(63, 2 ** 54)],
  "where small sums end": [noise(257, 2 ** -34), noise(63, 2 ** -32)],
  "no number of float32 is as large": [new Float32Array(2_051).fill(-3e38), noise(3, 1)],
  zeros: [new Float32Array(1_027), new Float32Array(2)],
};

const exponents = fc.integer({ min: -115, max: 127 });
const gradient = fc.tuple(
  fc.double({ min: 1, max: 1.99, noNaN: true }),
  fc.integer({ min: -6, max: 0 }),
);
/** Gradients of any magnitude, alike within a tensor. */
const tensors = fc.array(
  fc
    .tuple(exponents, fc.array(gradient, { minLength: 1, maxLength: 9 }))
    .map(([exponent, each]) =>
      Float32Array.from(
        each,
        ([mantissa, below]) => mantissa * 2 ** Math.max(-120, exponent + below),
      ),
    ),
  { minLength: 1, maxLength: 3 },
);

describe.each(targets)("norms of gradients whose squares float32 cannot hold, %s", (name, make) => {
  it("are right, and so is what is clipped by them", async () => {
    const target = await make();
    const found: string[] = [];
    for (const [title, all] of Object.entries(cases))
      for (const text of await wrongIn(target, all)) found.push(`${title}: ${text}`);
    expect(found).toEqual([]);
  });

  it("are right for gradients of any magnitude", async () => {
    const target = await make();
    await fc.assert(
      fc.asyncProperty(tensors, async (all) => {
        expect(await wrongIn(target, all)).toEqual([]);
      }),
      { numRuns: name === "CPU" ? 100 : 20 },
    );
  });

  it("are infinite for infinities, and NaN for NaN", async () => {
    const target = await make();
    const found: unknown[] = [];
    for (const bad of [Infinity, -Infinity, Number.NaN])
      for (const others of [1e-30, 1, 1e30]) {
        const { norms, factors } = await normsOf(target, [noise(259, others).with(258, bad)]);
        found.push([...norms, ...factors]);
      }
    const [infinite, none] = [
      [Infinity, Infinity, Infinity, Infinity, 0, 0],
      new Array(6).fill(Number.NaN),
    ];
    expect(found).toEqual([...new Array(6).fill(infinite), none, none, none]);
  });
});
