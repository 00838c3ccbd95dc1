import { scalerRule } from "../presets.js";
import type { Gradient, StateWords } from "../primitives.js";
import { FLAG_WORDS, OUTCOME_RING, OUTCOME_WORDS, STATE_WORDS } from "../primitives.js";
import { EXPONENT_WORDS } from "../underflow.js";
import {
  type AmpPrimitivesHarness,
  type ContractTest,
  gradient,
  near,
  normals,
  same,
  stateOf,
} from "./harness.js";

export const allocatesZeros: ContractTest = async ({ primitives }) => {
  for (const length of [1, STATE_WORDS, OUTCOME_RING * OUTCOME_WORDS]) {
    const found = await primitives.read(primitives.allocate(length));
    same(`a new buffer of ${length}`, found.subarray(0, length), new Float32Array(length));
  }
};

export const readsInOrder: ContractTest = async ({ primitives }) => {
  const state = primitives.allocate(STATE_WORDS);
  const writes = [
    [1024, 2 ** -10, 3, 1, 5, 6, 0, 0],
    [0.1, 10, 2 ** 24, -(2 ** 24), 0, 2 ** 20, 0, 0].map(Math.fround),
  ] as unknown as StateWords[];
  const reads = writes.map((words) => {
    primitives.writeState(state, words);
    return primitives.read(state);
  });
  for (const [i, read] of reads.entries()) {
    same(`read after write ${i}`, (await read).subarray(0, STATE_WORDS), writes[i] ?? []);
  }
};

/** Bits of float32 numbers that must set the flag. */
const nonFinite = [
  0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff,
  0x7fa00000, 0x7f812345,
];

/** Bits of float32 numbers that must not: zeros, subnormals, float16's and float32's largest, and past float16's. */
const finite = [
  0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x477fe000, 0xc77fe000, 0x47800000, 0x7f7fffff,
  0xff7fffff, 0x3f800000,
];

export const flagsPatterns: ContractTest = async (harness) => {
  for (const [patterns, expected] of [
    [nonFinite, 1],
    [finite, 0],
  ] as const) {
    const flags = await Promise.all(
      patterns.flatMap((bits) => {
        const values = new Float32Array(4);
        new Uint32Array(values.buffer)[2] = bits;
        return (["check", "unscale"] as const).map((how) => flagOf(harness, values, how));
      }),
    );
    const label = (i: number): string =>
      `${i % 2 === 0 ? "check" : "unscale"} of bits 0x${(patterns[i >> 1] ?? 0).toString(16)}`;
    same("foundInf", flags, new Array(flags.length).fill(expected), label);
  }
};

export const flagsAnyIndex =
  (length: number): ContractTest =>
  async (harness) => {
    const flags: number[] = [];
    const batch = 64;
    for (let start = 0; start < length; start += batch) {
      const indices = Array.from({ length: Math.min(batch, length - start) }, (_, i) => start + i);
      const found = indices.map((index) => {
        const values = new Float32Array(length).fill(65504);
        new Uint32Array(values.buffer)[index] = nonFinite[index % nonFinite.length] as number;
        return flagOf(harness, values, index % 2 === 0 ? "check" : "unscale");
      });
      flags.push(...(await Promise.all(found)));
    }
    same("foundInf", flags, new Array(length).fill(1), (index) => `non-finite element ${index}`);
    const clean = await flagOf(harness, new Float32Array(length).fill(-65504), "check");
    same("foundInf of finite gradients", [clean], [0]);
  };

async function flagOf<B, L>(
  { primitives, upload }: AmpPrimitivesHarness<B, L>,
  values: Float32Array,
  how: "check" | "unscale",
): Promise<number> {
  const gradients = [gradient(await upload(values), values.length)];
  const foundInf = primitives.allocate(FLAG_WORDS);
  if (how === "check") primitives.check(gradients, foundInf);
  else primitives.unscale(gradients, stateOf(primitives, [65536, 2 ** -16]), foundInf);
  return (await primitives.read(foundInf))[0] as number;
}

export const respectsRanges: ContractTest = async (harness) => {
  const { primitives, upload, download } = harness;
  const values = new Float32Array(192).fill(3);
  for (const outside of [63, 69, 127, 191]) values[outside] = Number.POSITIVE_INFINITY;
  const buffer = await upload(values);
  const ranges: Gradient<typeof buffer>[] = [
    { buffer, dtype: "float32", offset: 256, length: 5 },
    { buffer, dtype: "float32", offset: 512, length: 63 },
  ];
  const state = stateOf(primitives, [0.5, 2]);
  const foundInf = primitives.allocate(FLAG_WORDS);
  primitives.check(ranges, foundInf);
  primitives.unscale(ranges, state, foundInf);
  same("foundInf", (await primitives.read(foundInf)).subarray(0, 1), [0]);
  const inside = (i: number): boolean => (i >= 64 && i < 69) || (i >= 128 && i < 191);
  const expected = values.map((value, i) => (inside(i) ? value * 2 : value));
  same("gradients", (await download(buffer)).subarray(0, 192), expected);
};

export const keepsFlags: ContractTest = async ({ primitives, upload }) => {
  const bad = gradient(await upload(Float32Array.of(1, Number.NaN)), 2);
  const good = gradient(await upload(Float32Array.of(1, 2, 3)), 3);
  const state = stateOf(primitives, [8, 0.125]);
  const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
  const lossFlag = primitives.allocate(FLAG_WORDS);
  const foundInf = primitives.allocate(FLAG_WORDS);
  const flags: Promise<Float32Array>[] = [];
  const look = (): void => void flags.push(primitives.read(foundInf));
  primitives.check([good, bad], foundInf);
  look();
  primitives.check([good], foundInf);
  primitives.unscale([good], state, foundInf);
  look();
  const rule = scalerRule();
  primitives.updateScale({ state, foundInfs: [foundInf], rule, lossFlag, outcomes, tag: 1 });
  look();
  primitives.check([good], foundInf);
  look();
  const found = (await Promise.all(flags)).map((words) => words[0] as number);
  const steps = ["after an overflow", "after clean gradients", "after the update", "in a new step"];
  same("foundInf", found, [1, 1, 0, 0], (i) => steps[i] ?? "");
};

export const checkOnlyReads: ContractTest = async ({ primitives, upload, download }) => {
  const values = normals(1000, 7);
  const buffer = await upload(values);
  primitives.check([gradient(buffer, values.length)], primitives.allocate(FLAG_WORDS));
  same("gradients", (await download(buffer)).subarray(0, values.length), values);
};

export const unscales: ContractTest = async ({ primitives, upload, download }) => {
  for (const scale of [65536, 1, 2 ** -16, 3, 1000, 0.1].map(Math.fround)) {
    for (const length of [1, 5, 257]) {
      const values = normals(length, length + scale);
      const buffer = await upload(values);
      const inverse = Math.fround(1 / scale);
      const state = stateOf(primitives, [scale, inverse]);
      primitives.unscale([gradient(buffer, length)], state, primitives.allocate(FLAG_WORDS));
      const found = (await download(buffer)).subarray(0, length);
      const expected = values.map((value) => value * inverse);
      same(`gradients of scale ${scale}`, found, expected, (i) => `${values[i]} unscaled`);
    }
  }
};

export const scalesLosses: ContractTest = async (harness) => {
  const { primitives } = harness;
  type Losses = NonNullable<typeof harness.losses>;
  // Without `losses` the type of losses is that of buffers.
  const losses = harness.losses ?? (harness as unknown as Losses);
  const found: number[] = [];
  const expected: number[] = [];
  for (const scale of [65536, 3, 0.1].map(Math.fround)) {
    const state = stateOf(primitives, [scale, Math.fround(1 / scale)]);
    for (const weight of [1, 0.25, Math.fround(1 / 3)]) {
      for (const value of [1, 0.1, -2.5, 3e-30, 1e30].map(Math.fround)) {
        const loss = await losses.upload(Float32Array.of(value));
        const lossFlag = primitives.allocate(FLAG_WORDS);
        const scaled = primitives.scaleLoss(loss, state, { weight, lossFlag });
        found.push((await losses.download(scaled))[0] as number);
        expected.push(Math.fround(Math.fround(value * weight) * scale));
      }
    }
  }
  same("scaled losses", found, expected);
};

export const flagsLosses: ContractTest = async (harness) => {
  const { primitives } = harness;
  type Losses = NonNullable<typeof harness.losses>;
  const losses = harness.losses ?? (harness as unknown as Losses);
  const state = stateOf(primitives, [65536, 2 ** -16]);
  const flags: number[] = [];
  // The last is finite, although its product with the scale is not.
  const values = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1, -65504, 3e38];
  for (const value of values) {
    const lossFlag = primitives.allocate(FLAG_WORDS);
    const options = { weight: 1, lossFlag };
    primitives.scaleLoss(await losses.upload(Float32Array.of(value)), state, options);
    primitives.scaleLoss(await losses.upload(Float32Array.of(0.5)), state, options);
    flags.push((await primitives.read(lossFlag))[0] as number);
  }
  same("lossFlag", flags, [1, 1, 1, 0, 0, 0], (i) => `loss ${values[i]}`);
};

export const sumsSquares: ContractTest = async ({ primitives, upload }) => {
  if (primitives.normPartials === undefined) return;
  const rule = scalerRule();
  const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
  const squares = primitives.allocate(primitives.normPartials);
  const lossFlag = primitives.allocate(FLAG_WORDS);
  const foundInf = primitives.allocate(FLAG_WORDS);
  const scale = Math.fround(1000);
  const inverse = Math.fround(1 / scale);
  let tag = 0;
  for (const length of [1, 5, 257, 5000]) {
    const values = normals(length, length, 3);
    const other = normals(7, length, 3);
    for (const how of ["check", "unscale", "both"] as const) {
      const state = stateOf(primitives, [scale, inverse]);
      const gradients = [gradient(await upload(values), length)];
      const others = how === "both" ? [gradient(await upload(other), 7)] : [];
      if (how === "check") primitives.check(gradients, foundInf, { squares, state });
      else primitives.unscale(gradients, state, foundInf, squares);
      if (how === "both") primitives.check(others, foundInf, { squares, state });
      tag += 1;
      const foundInfs = [foundInf];
      primitives.updateScale({ state, foundInfs, rule, lossFlag, outcomes, squares, tag });
      const found = (await primitives.read(outcomes))[(tag - 1) * OUTCOME_WORDS + 5];
      const all = how === "both" ? [...values, ...other] : [...values];
      const expected = Math.sqrt(all.reduce((sum, value) => sum + (value * inverse) ** 2, 0));
      near(`gradient norm of ${all.length} (${how})`, found, expected);
    }
  }
  // Float32 can represent these norms, but not their squares.
  for (const magnitude of [1e-30, 1e38]) {
    const state = stateOf(primitives, [1, 1]);
    const values = new Float32Array(5).fill(magnitude);
    const gradients = [gradient(await upload(values), values.length)];
    primitives.check(gradients, foundInf, { squares, state });
    tag += 1;
    const foundInfs = [foundInf];
    primitives.updateScale({ state, foundInfs, rule, lossFlag, outcomes, squares, tag });
    const found = (await primitives.read(outcomes))[(tag - 1) * OUTCOME_WORDS + 5];
    near(`gradient norm of ${magnitude}s`, found, Math.sqrt(5) * Math.fround(magnitude));
  }
};

export const countsExponents: ContractTest = async ({ primitives, upload }) => {
  if (primitives.countExponents === undefined) return;
  const rule = scalerRule(undefined, { targetUnderflow: 0.25, growthInterval: 1, initScale: 4 });
  const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
  const exponents = primitives.allocate(EXPONENT_WORDS);
  const lossFlag = primitives.allocate(FLAG_WORDS);
  const foundInfs = [primitives.allocate(FLAG_WORDS)];
  const state = stateOf(primitives, [4, 0.25, 0, 1]);
  const lost = 2 ** -30;
  // The share that underflows in float16, and the scale with which at most a quarter does.
  const cases: [values: number[], share: number, scaleAfter: number][] = [
    [[1, 1, 0, 0, 0, 1, 1], 0, 4],
    [[lost, 1, 1, 1, 0], 0.25, 4],
    [[lost, lost, 1, 1, 0, 0], 0.5, 4 * 2 ** 5],
    // The largest gradient must stay below 2^15.
    [[...new Array<number>(9).fill(lost), 2 ** 12], 0.9, 4 * 2 ** 7],
    [[2 ** 17, 1], 0, 4 * 2 ** 4],
    // No exponents to use: doubled, as without a target.
    [[0, 0], 0, 4 * 2 ** 5],
  ];
  let tag = 0;
  for (const [values, share, scaleAfter] of cases) {
    tag += 1;
    const padded = [...values, ...new Array<number>(1000).fill(0)];
    const gradients = [gradient(await upload(Float32Array.from(padded)), padded.length)];
    primitives.countExponents(gradients, exponents);
    primitives.updateScale({ state, foundInfs, rule, lossFlag, outcomes, exponents, tag });
    const at = (tag - 1) * OUTCOME_WORDS;
    const ring = await primitives.read(outcomes);
    near(`underflow of case ${tag}`, ring[at + 6], share);
    same(`scale of case ${tag}`, [ring[at + 3] as number], [scaleAfter]);
  }
};

export const rescales: ContractTest = async ({ primitives, upload, download }) => {
  if (primitives.rescale === undefined) return;
  const [from, to] = [3, 1000].map((scale) => [scale, Math.fround(1 / scale)] as const);
  for (const length of [1, 5, 257]) {
    const values = normals(length + 2, length);
    // Outside the range: neither changed nor checked.
    values[length] = Number.NaN;
    const foundInf = primitives.allocate(FLAG_WORDS);
    const states = [from, to].map((words) => stateOf(primitives, words ?? [1]));
    const [own, other] = states as [(typeof states)[0], (typeof states)[0]];
    const buffer = await upload(values);
    primitives.rescale([gradient(buffer, length)], own, other, foundInf);
    const expected = values.map((value, i) =>
      i < length ? Math.fround(value * Math.fround(1 / 3)) * 1000 : value,
    );
    same("rescaled", (await download(buffer)).subarray(0, length + 2), expected);
    same("foundInf", (await primitives.read(foundInf)).subarray(0, 1), [0]);
    const bad = values.with(length >> 1, Number.NEGATIVE_INFINITY);
    const badBuffer = await upload(bad);
    primitives.rescale([gradient(badBuffer, length)], own, other, foundInf);
    const zeroed = expected.with(length >> 1, 0);
    same("rescaled", (await download(badBuffer)).subarray(0, length), zeroed.subarray(0, length));
    same("foundInf", (await primitives.read(foundInf)).subarray(0, 1), [1]);
  }
};

export const combines: ContractTest = async ({ primitives, upload }) => {
  if (primitives.combine === undefined) return;
  const flags = await Promise.all([0, 1, 0].map((flag) => upload(Float32Array.of(flag))));
  const [zero, one, other] = flags as [(typeof flags)[0], (typeof flags)[0], (typeof flags)[0]];
  const into = primitives.allocate(FLAG_WORDS);
  const found: number[] = [];
  for (const parts of [[zero, one], [zero, other], [one, zero, other], [zero]]) {
    primitives.combine(parts, into);
    found.push((await primitives.read(into))[0] as number);
  }
  same("combined flags", found, [1, 0, 1, 0]);
};
