/**
 * The contract of `AmpPrimitives`, for whoever implements them over buffers of their own. It needs no test framework:
 * each case is a name and an async function that throws, naming what differs.
 */
import type { AmpPrimitives, Gradient, StateWords } from "./primitives.js";
import { OUTCOME_RING, OUTCOME_WORDS, STATE_WORDS } from "./primitives.js";
import {
  initialScaleState,
  nextScaleState,
  type ScaleRule,
  type ScaleState,
  scalerRule,
} from "./rule.js";
import { stateWords } from "./state-dict.js";

/** An implementation under test, and how to put numbers into its buffers and losses and get them out. */
export interface AmpPrimitivesHarness<B, L = B> {
  readonly primitives: AmpPrimitives<B, L>;
  /** A buffer of float32 gradients. */
  upload(values: Float32Array): B | Promise<B>;
  /** All elements of such a buffer. */
  download(buffer: B): Promise<Float32Array>;
  /** Where losses are not buffers: the same for float32 losses of one element. */
  readonly losses?: {
    upload(values: Float32Array): L | Promise<L>;
    download(loss: L): Promise<Float32Array>;
  };
}

/** One test. Rejects with an `Error` that says what was expected and what was found. */
export interface ContractCase {
  readonly name: string;
  run(): Promise<void>;
}

/**
 * The cases that every implementation of `AmpPrimitives` must pass. `make` is called once, by the first case that runs.
 *
 * @example
 * for (const { name, run } of ampPrimitivesContract("float32", makeHarness)) test(name, run);
 */
export function ampPrimitivesContract<B, L = B>(
  name: string,
  make: () => AmpPrimitivesHarness<B, L> | Promise<AmpPrimitivesHarness<B, L>>,
): readonly ContractCase[] {
  type Case = [label: string, run: (harness: AmpPrimitivesHarness<B, L>) => Promise<void>];
  let made: Promise<AmpPrimitivesHarness<B, L>> | undefined;
  const harness = (): Promise<AmpPrimitivesHarness<B, L>> => {
    made ??= Promise.resolve(make());
    return made;
  };
  const cases: Case[] = [
    ["allocates zeros and reads them", allocatesZeros],
    ["reads a snapshot in program order", readsInOrder],
    ["flags every non-finite pattern and no finite one", flagsPatterns],
    ...[1, 3, 4, 5, 255, 256, 257, 1000].map(
      (length): Case => [
        `flags one element at any index of ${length}`,
        (made) => flagsAnyIndex(made, length),
      ],
    ),
    ["looks only at the range of a gradient", respectsRanges],
    ["keeps a flag until the update", keepsFlags],
    ["check changes no gradient", checkOnlyReads],
    ["unscale multiplies by 1 / scale in float32", unscales],
    ["scaleLoss multiplies by the scale in float32", scalesLosses],
    ...traceRules().map(
      ([label, rule]): Case => [
        `updateScale equals nextScaleState: ${label}`,
        (made) => followsRule(made, rule),
      ],
    ),
    ["updateScale sets a new scale and leaves the trackers", setsScale],
    ["outcomes name each optimizer", namesOptimizers],
    ["the ring holds the last 256 outcomes", keepsRing],
  ];
  return cases.map(([label, run]) => ({
    name: `${name}: ${label}`,
    run: async () => run(await harness()),
  }));
}

async function allocatesZeros<B, L>({ primitives }: AmpPrimitivesHarness<B, L>): Promise<void> {
  for (const length of [1, STATE_WORDS, OUTCOME_RING * OUTCOME_WORDS]) {
    const found = await primitives.read(primitives.allocate(length));
    same(`a new buffer of ${length}`, found.subarray(0, length), new Float32Array(length));
  }
}

async function readsInOrder<B, L>({ primitives }: AmpPrimitivesHarness<B, L>): Promise<void> {
  const state = primitives.allocate(STATE_WORDS);
  const writes: StateWords[] = [
    [1024, 2 ** -10, 3, 1],
    [0.1, 10, 2 ** 24, -(2 ** 24)].map(Math.fround) as unknown as StateWords,
  ];
  const reads = writes.map((words) => {
    primitives.writeState(state, words);
    return primitives.read(state);
  });
  for (const [i, read] of reads.entries()) {
    same(`read after write ${i}`, (await read).subarray(0, STATE_WORDS), writes[i] ?? []);
  }
}

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

async function flagsPatterns<B, L>(harness: AmpPrimitivesHarness<B, L>): Promise<void> {
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
}

async function flagsAnyIndex<B, L>(
  harness: AmpPrimitivesHarness<B, L>,
  length: number,
): Promise<void> {
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
}

async function flagOf<B, L>(
  { primitives, upload }: AmpPrimitivesHarness<B, L>,
  values: Float32Array,
  how: "check" | "unscale",
): Promise<number> {
  const gradients = [gradient(await upload(values), values.length)];
  const foundInf = primitives.allocate(1);
  if (how === "check") primitives.check(gradients, foundInf);
  else primitives.unscale(gradients, stateOf(primitives, [65536, 2 ** -16, 0, 1]), foundInf);
  return (await primitives.read(foundInf))[0] as number;
}

async function respectsRanges<B, L>(harness: AmpPrimitivesHarness<B, L>): Promise<void> {
  const { primitives, upload, download } = harness;
  const values = new Float32Array(192).fill(3);
  for (const outside of [63, 69, 127, 191]) values[outside] = Number.POSITIVE_INFINITY;
  const buffer = await upload(values);
  const ranges: Gradient<B>[] = [
    { buffer, dtype: "float32", offset: 256, length: 5 },
    { buffer, dtype: "float32", offset: 512, length: 63 },
  ];
  const state = stateOf(primitives, [0.5, 2, 0, 1]);
  const foundInf = primitives.allocate(1);
  primitives.check(ranges, foundInf);
  primitives.unscale(ranges, state, foundInf);
  same("foundInf", (await primitives.read(foundInf)).subarray(0, 1), [0]);
  const inside = (i: number): boolean => (i >= 64 && i < 69) || (i >= 128 && i < 191);
  const expected = values.map((value, i) => (inside(i) ? value * 2 : value));
  same("gradients", (await download(buffer)).subarray(0, 192), expected);
}

async function keepsFlags<B, L>(harness: AmpPrimitivesHarness<B, L>): Promise<void> {
  const { primitives, upload } = harness;
  const bad = gradient(await upload(Float32Array.of(1, Number.NaN)), 2);
  const good = gradient(await upload(Float32Array.of(1, 2, 3)), 3);
  const state = stateOf(primitives, [8, 0.125, 0, 1]);
  const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
  const foundInf = primitives.allocate(1);
  const flags: Promise<Float32Array>[] = [];
  const look = (): void => void flags.push(primitives.read(foundInf));
  primitives.check([good, bad], foundInf);
  look();
  primitives.check([good], foundInf);
  primitives.unscale([good], state, foundInf);
  look();
  const update = { state, foundInfs: [foundInf], rule: scalerRule(), outcomes, tag: 1 };
  primitives.updateScale(update);
  look();
  primitives.check([good], foundInf);
  look();
  const found = (await Promise.all(flags)).map((words) => words[0] as number);
  const steps = ["after an overflow", "after clean gradients", "after the update", "in a new step"];
  same("foundInf", found, [1, 1, 0, 0], (i) => steps[i] ?? "");
}

async function checkOnlyReads<B, L>(harness: AmpPrimitivesHarness<B, L>): Promise<void> {
  const { primitives, upload, download } = harness;
  const values = normals(1000, 7);
  const buffer = await upload(values);
  primitives.check([gradient(buffer, values.length)], primitives.allocate(1));
  same("gradients", (await download(buffer)).subarray(0, values.length), values);
}

async function unscales<B, L>(harness: AmpPrimitivesHarness<B, L>): Promise<void> {
  const { primitives, upload, download } = harness;
  for (const scale of [65536, 1, 2 ** -16, 3, 1000, 0.1].map(Math.fround)) {
    for (const length of [1, 5, 257]) {
      const values = normals(length, length + scale);
      const buffer = await upload(values);
      const inverse = Math.fround(1 / scale);
      const state = stateOf(primitives, [scale, inverse, 0, 1]);
      primitives.unscale([gradient(buffer, length)], state, primitives.allocate(1));
      const found = (await download(buffer)).subarray(0, length);
      const expected = values.map((value) => value * inverse);
      same(`gradients of scale ${scale}`, found, expected, (i) => `${values[i]} unscaled`);
    }
  }
}

async function scalesLosses<B, L>(harness: AmpPrimitivesHarness<B, L>): Promise<void> {
  const { primitives } = harness;
  // Without `losses` the type of losses is that of buffers.
  const losses =
    harness.losses ?? (harness as unknown as NonNullable<AmpPrimitivesHarness<B, L>["losses"]>);
  const found: number[] = [];
  const expected: number[] = [];
  for (const scale of [65536, 3, 0.1].map(Math.fround)) {
    for (const value of [1, 0.1, -2.5, 3e-30, 1e30].map(Math.fround)) {
      const state = stateOf(primitives, [scale, Math.fround(1 / scale), 0, 1]);
      const scaled = primitives.scaleLoss(await losses.upload(Float32Array.of(value)), state);
      found.push((await losses.download(scaled))[0] as number);
      expected.push(Math.fround(value * scale));
    }
  }
  same("scaled losses", found, expected);
}

/** Rules whose traces reach growth, backing off, hysteresis, the floor, the ceiling, subnormal scales and zero. */
function traceRules(): [label: string, rule: ScaleRule][] {
  const short = { growthInterval: 3 };
  const odd = { growthFactor: 1.7, backoffFactor: 0.3, ...short };
  return [
    ["default", scalerRule(undefined, short)],
    ["torch", scalerRule("torch", short)],
    ["apex", scalerRule("apex", short)],
    ["apexHysteresis", scalerRule("apexHysteresis", { ...short, hysteresis: 3 })],
    ["megatron", scalerRule("megatron", { ...short, hysteresis: 3 })],
    ["static", scalerRule("static")],
    ["factors that are no powers of two", scalerRule(undefined, { ...odd, initScale: 1000 })],
    ["growth every step", scalerRule(undefined, { growthInterval: 1, maxScale: 2 ** 20 })],
    ["up to overflow", scalerRule("torch", { initScale: 2 ** 126, growthInterval: 1 })],
    ["odd factors up to overflow", scalerRule("torch", { ...odd, initScale: 1e38 })],
    ["down to zero", scalerRule("torch", { initScale: 2 ** -120, ...short })],
    ["odd factors down to zero", scalerRule("torch", { ...odd, initScale: 1e-36 })],
  ];
}

async function followsRule<B, L>(
  { primitives, upload }: AmpPrimitivesHarness<B, L>,
  rule: ScaleRule,
): Promise<void> {
  const bad = [gradient(await upload(Float32Array.of(Number.NEGATIVE_INFINITY)), 1)];
  const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
  const foundInf = primitives.allocate(1);
  let expected = initialScaleState(rule);
  const state = stateOf(primitives, stateWords(expected, rule));
  const random = uniform(rule.initScale + rule.growthInterval);
  const states: [step: number, state: ScaleState, words: Promise<Float32Array>][] = [];
  const ring = new Float32Array(OUTCOME_RING * OUTCOME_WORDS);
  for (let step = 1; step <= OUTCOME_RING; step += 1) {
    // Long runs of either kind, so that the scale travels far both ways.
    const overflow = random() < (Math.floor(step / 48) % 2 === 0 ? 0.05 : 0.9);
    if (overflow) primitives.check(bad, foundInf);
    primitives.updateScale({ state, foundInfs: [foundInf], rule, outcomes, tag: step });
    const before = expected.scale;
    expected = nextScaleState(expected, overflow, rule);
    ring.set([step, overflow ? 1 : 0, before, expected.scale], (step - 1) * OUTCOME_WORDS);
    if (step % 8 === 0) states.push([step, expected, primitives.read(state)]);
  }
  for (const [step, after, words] of states) {
    const found = (await words).subarray(0, STATE_WORDS);
    same(`state after step ${step}`, found, stateWords(after, rule), (i) => `word ${i}`);
  }
  same("outcomes", (await primitives.read(outcomes)).subarray(0, ring.length), ring, ringLabel);
}

async function setsScale<B, L>({ primitives }: AmpPrimitivesHarness<B, L>): Promise<void> {
  const rule = scalerRule("megatron");
  const state = stateOf(primitives, [64, 2 ** -6, 7, 2]);
  const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
  const common = { state, rule, outcomes };
  primitives.updateScale({ ...common, foundInfs: [], newScale: 48, tag: 0 });
  const first = primitives.read(state);
  primitives.updateScale({ ...common, foundInfs: [primitives.allocate(1)], newScale: 3, tag: 1 });
  const inverse = (scale: number): number => Math.fround(1 / scale);
  same("state", (await first).subarray(0, STATE_WORDS), [48, inverse(48), 7, 2]);
  const second = await primitives.read(state);
  same("state", second.subarray(0, STATE_WORDS), [3, inverse(3), 7, 2]);
  const ring = new Float32Array(OUTCOME_RING * OUTCOME_WORDS);
  ring.set([1, 0, 48, 3]);
  same("outcomes", (await primitives.read(outcomes)).subarray(0, ring.length), ring, ringLabel);
}

async function namesOptimizers<B, L>(harness: AmpPrimitivesHarness<B, L>): Promise<void> {
  const { primitives, upload } = harness;
  const rule = scalerRule();
  const bad = [gradient(await upload(Float32Array.of(0, Number.NaN, 0)), 3)];
  const state = stateOf(primitives, stateWords(initialScaleState(rule), rule));
  const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
  const flags: number[] = [];
  const expected: number[] = [];
  let tag = 0;
  for (const count of [1, 2, 3, 5, 24]) {
    const foundInfs = Array.from({ length: count }, () => primitives.allocate(1));
    const overflowing = new Set([0, count - 1, count >> 1]);
    for (const i of overflowing) primitives.check(bad, foundInfs[i] as B);
    tag += 1;
    primitives.updateScale({ state, foundInfs, rule, outcomes, tag });
    expected.push([...overflowing].reduce((sum, i) => sum + 2 ** i, 0));
    const cleared = await Promise.all(foundInfs.map((foundInf) => primitives.read(foundInf)));
    const left = cleared.map((words) => words[0] as number);
    same(`flags of ${count} optimizers after the update`, left, new Array(count).fill(0));
    flags.push((await primitives.read(outcomes))[(tag - 1) * OUTCOME_WORDS + 1] as number);
  }
  same("flags of outcomes", flags, expected);
  const scale = (await primitives.read(state))[0] as number;
  same("scale after 5 skipped steps", [scale], [2 ** 11]);
}

async function keepsRing<B, L>({ primitives }: AmpPrimitivesHarness<B, L>): Promise<void> {
  const rule = scalerRule("torch", { growthInterval: 40 });
  let expected = initialScaleState(rule);
  const state = stateOf(primitives, stateWords(expected, rule));
  const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
  const foundInfs = [primitives.allocate(1)];
  const ring = new Float32Array(OUTCOME_RING * OUTCOME_WORDS);
  const tags = [
    ...Array.from({ length: OUTCOME_RING + 44 }, (_, i) => i + 1),
    2 ** 24 - 1,
    2 ** 24,
    1,
  ];
  for (const tag of tags) {
    primitives.updateScale({ state, foundInfs, rule, outcomes, tag });
    const before = expected.scale;
    expected = nextScaleState(expected, false, rule);
    const slot = (tag - 1) % OUTCOME_RING;
    ring.set([tag, 0, before, expected.scale], slot * OUTCOME_WORDS);
  }
  same("outcomes", (await primitives.read(outcomes)).subarray(0, ring.length), ring, ringLabel);
}

const ringLabel = (i: number): string =>
  `slot ${Math.floor(i / OUTCOME_WORDS)}, ${["tag", "flags", "scale before", "scale after"][i % OUTCOME_WORDS]}`;

const gradient = <B>(buffer: B, length: number): Gradient<B> => ({
  buffer,
  dtype: "float32",
  offset: 0,
  length,
  name: "contract",
});

function stateOf<B, L>(primitives: AmpPrimitives<B, L>, words: StateWords): B {
  const state = primitives.allocate(STATE_WORDS);
  primitives.writeState(state, words);
  return state;
}

/** Numbers in [0, 1) from a linear congruence: any two machines test the same traces. */
function uniform(seed: number): () => number {
  let state = (Math.trunc(seed) ^ 0x9e3779b9) >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Float32 numbers of either sign from about 2^-60 to 2^60, so that no product with a test's scale is subnormal. */
function normals(length: number, seed: number): Float32Array {
  const random = uniform(seed);
  return Float32Array.from(
    { length },
    () => (random() < 0.5 ? -1 : 1) * (1 + random()) * 2 ** Math.floor(random() * 120 - 60),
  );
}

/** Compares bits, so that -0 is not 0, and throws one error that names the first differences. */
function same(
  what: string,
  found: ArrayLike<number>,
  expected: ArrayLike<number>,
  label: (index: number) => string = (index) => `element ${index}`,
): void {
  const foundBits = bitsOf(found);
  const expectedBits = bitsOf(expected);
  const wrong: string[] = [];
  for (let i = 0; i < Math.max(foundBits.length, expectedBits.length); i += 1) {
    if (foundBits[i] !== expectedBits[i]) {
      wrong.push(`${label(i)}: expected ${expected[i]}, found ${found[i]}`);
    }
  }
  if (wrong.length === 0) return;
  const shown = wrong.slice(0, 5).join("; ");
  throw new Error(`${what}: ${wrong.length} of ${expectedBits.length} differ: ${shown}`);
}

const bitsOf = (values: ArrayLike<number>): Uint32Array =>
  new Uint32Array(Float32Array.from(values).buffer);
