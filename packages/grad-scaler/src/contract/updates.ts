import { type ScalerPreset, scalerRule } from "../presets.js";
import type { Gradient, ScaleUpdate } from "../primitives.js";
import { FLAG_WORDS, OUTCOME_RING, OUTCOME_WORDS, STATE_WORDS } from "../primitives.js";
import { initialScaleState, nextScale, type ScaleRule, type ScaleState } from "../rule.js";
import { wordsOfState } from "../state-dict.js";
import { type ContractTest, gradient, ringLabel, same, stateOf, uniform } from "./harness.js";

/**
 * Rules whose traces include growth, backing off, hysteresis, tolerance, the floor, the ceiling, subnormal scales and zero.
 */
export function traceRules(): [label: string, rule: ScaleRule][] {
  const short = { growthInterval: 3 };
  const odd = { growthFactor: 1.7, backoffFactor: 0.3, ...short };
  const of = (preset: ScalerPreset, options: Partial<ScaleRule> = {}): [string, ScaleRule] => [
    preset,
    scalerRule(preset, { ...short, ...options }),
  ];
  return [
    ["default", scalerRule(undefined, short)],
    of("torch"),
    of("apex"),
    of("apexHysteresis", { hysteresis: 3 }),
    of("megatron", { hysteresis: 3 }),
    of("deepspeed", { hysteresis: 3 }),
    of("deepspeedFp16Optimizer"),
    of("fairseq", { tolerance: 0.3 }),
    of("static"),
    ["factors that are no powers of two", scalerRule(undefined, { ...odd, initScale: 1000 })],
    ["growth every step", scalerRule(undefined, { growthInterval: 1, maxScale: 2 ** 20 })],
    ["up to overflow", scalerRule("torch", { initScale: 2 ** 126, growthInterval: 1 })],
    ["odd factors up to overflow", scalerRule("torch", { ...odd, initScale: 1e38 })],
    ["down to zero", scalerRule("torch", { initScale: 2 ** -120, ...short })],
    ["odd factors down to zero", scalerRule("torch", { ...odd, initScale: 1e-36 })],
  ];
}

export const followsRule =
  (rule: ScaleRule): ContractTest =>
  async ({ primitives, upload }) => {
    const bad = [gradient(await upload(Float32Array.of(Number.NEGATIVE_INFINITY)), 1)];
    const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
    const lossFlag = primitives.allocate(FLAG_WORDS);
    const foundInf = primitives.allocate(FLAG_WORDS);
    let expected = initialScaleState(rule);
    const state = stateOf(primitives, wordsOfState(expected, rule));
    const random = uniform(rule.initScale + rule.growthInterval);
    const states: [step: number, state: ScaleState, words: Promise<Float32Array>][] = [];
    const ring = new Float32Array(OUTCOME_RING * OUTCOME_WORDS);
    for (let step = 1; step <= OUTCOME_RING; step += 1) {
      // Long runs of either kind, so that the scale changes far in both directions.
      const overflow = random() < (Math.floor(step / 48) % 2 === 0 ? 0.05 : 0.9);
      if (overflow) primitives.check(bad, foundInf);
      const foundInfs = [foundInf];
      primitives.updateScale({ state, foundInfs, rule, lossFlag, outcomes, tag: step });
      const before = expected.scale;
      const next = nextScale(expected, overflow, rule);
      expected = next.state;
      const causes = next.isCollapse ? 2 : 0;
      ring.set(
        [step, overflow ? 1 : 0, before, expected.scale, causes, -1, -1, 0],
        (step - 1) * OUTCOME_WORDS,
      );
      if (step % 8 === 0) states.push([step, expected, primitives.read(state)]);
    }
    for (const [step, after, words] of states) {
      const found = (await words).subarray(0, STATE_WORDS);
      same(`state after step ${step}`, found, wordsOfState(after, rule), (i) => `word ${i}`);
    }
    same("outcomes", (await primitives.read(outcomes)).subarray(0, ring.length), ring, ringLabel);
  };

export const setsScale: ContractTest = async ({ primitives }) => {
  const rule = scalerRule("megatron");
  const state = stateOf(primitives, [64, 2 ** -6, 7, 2]);
  const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
  const common = { state, rule, outcomes, lossFlag: primitives.allocate(FLAG_WORDS) };
  primitives.updateScale({ ...common, foundInfs: [], newScale: 48, tag: 0 });
  const first = primitives.read(state);
  primitives.updateScale({
    ...common,
    foundInfs: [primitives.allocate(FLAG_WORDS)],
    newScale: 3,
    tag: 1,
  });
  const words = (scale: number): number[] => [scale, Math.fround(1 / scale), 7, 2, 0, 0, 0, 0];
  same("state", (await first).subarray(0, STATE_WORDS), words(48));
  const second = await primitives.read(state);
  same("state", second.subarray(0, STATE_WORDS), words(3));
  const ring = new Float32Array(OUTCOME_RING * OUTCOME_WORDS);
  ring.set([1, 0, 48, 3, 0, -1, -1, 0]);
  same("outcomes", (await primitives.read(outcomes)).subarray(0, ring.length), ring, ringLabel);
};

export const namesOptimizers: ContractTest = async ({ primitives, upload }) => {
  const rule = scalerRule();
  const bad = [gradient(await upload(Float32Array.of(0, Number.NaN, 0)), 3)];
  const state = stateOf(primitives, wordsOfState(initialScaleState(rule), rule));
  const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
  const lossFlag = primitives.allocate(FLAG_WORDS);
  const flags: number[] = [];
  const expected: number[] = [];
  let tag = 0;
  for (const count of [1, 2, 3, 5, 24]) {
    const foundInfs = Array.from({ length: count }, () => primitives.allocate(FLAG_WORDS));
    const overflowing = new Set([0, count - 1, count >> 1]);
    for (const i of overflowing) {
      const foundInf = foundInfs[i];
      if (foundInf !== undefined) primitives.check(bad, foundInf);
    }
    tag += 1;
    primitives.updateScale({ state, foundInfs, rule, lossFlag, outcomes, tag });
    expected.push([...overflowing].reduce((sum, i) => sum + 2 ** i, 0));
    const cleared = await Promise.all(foundInfs.map((foundInf) => primitives.read(foundInf)));
    const left = cleared.map((words) => words[0] as number);
    same(`flags of ${count} optimizers after the update`, left, new Array(count).fill(0));
    flags.push((await primitives.read(outcomes))[(tag - 1) * OUTCOME_WORDS + 1] as number);
  }
  same("flags of outcomes", flags, expected);
  const scale = (await primitives.read(state))[0] as number;
  same("scale after 5 skipped steps", [scale], [2 ** 11]);
};

export const tellsCauses: ContractTest = async ({ primitives, upload }) => {
  const rule = scalerRule(undefined, { initScale: 4, minScale: 2 });
  const bad = [gradient(await upload(Float32Array.of(Number.NaN)), 1)];
  const state = stateOf(primitives, wordsOfState(initialScaleState(rule), rule));
  const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
  const [lossFlag, foundInf] = [primitives.allocate(FLAG_WORDS), primitives.allocate(FLAG_WORDS)];
  const common: ScaleUpdate<typeof state> = {
    ...{ state, foundInfs: [foundInf], rule, lossFlag, outcomes, tag: 0 },
  };
  const steps = [
    { backward: true },
    { forward: true, backward: true },
    {},
    { forward: true, backward: true },
    { forward: true },
  ];
  for (const [i, { forward, backward }] of steps.entries()) {
    // A check sets any flag, so it can set this one.
    if (forward) primitives.check(bad, lossFlag);
    if (backward) primitives.check(bad, foundInf);
    primitives.updateScale({ ...common, tag: i + 1 });
  }
  const ring = await primitives.read(outcomes);
  const causes = steps.map((_, i) => ring[i * OUTCOME_WORDS + 4] as number);
  same("causes", causes, [0, 3, 0, 3, 1], (i) => `step ${i + 1}`);
};

export const tellsZeros: ContractTest = async ({ primitives, upload }) => {
  const rule = scalerRule();
  const state = stateOf(primitives, wordsOfState(initialScaleState(rule), rule));
  const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
  const lossFlag = primitives.allocate(FLAG_WORDS);
  const flags = [primitives.allocate(FLAG_WORDS), primitives.allocate(FLAG_WORDS)];
  const upTo = async (length: number, last: number) =>
    gradient(await upload(new Float32Array(length).fill(-0).with(length - 1, last)), length);
  const zeros = await upTo(5, 0);
  // The gradients that each of two optimizers checks, alternately by `check` and by `unscale`, and whether all of them are
  // 0.
  const steps: [checked: Gradient<(typeof zeros)["buffer"]>[][], allZero: number][] = [
    [[[zeros], [await upTo(257, -0)]], 1],
    [[[zeros, await upTo(257, 1e-38)], [zeros]], 0],
    [[[zeros], [await upTo(3, Number.NaN)]], 0],
    [[[zeros], []], 1],
    [[[], []], 0],
    [[[], [await upTo(1, -1), zeros]], 0],
    [[[zeros, zeros], []], 1],
  ];
  for (const [i, [checked]] of steps.entries()) {
    for (const [k, gradients] of checked.entries()) {
      const foundInf = flags[k];
      if (foundInf === undefined || gradients.length === 0) continue;
      if (i % 2 === 0) primitives.check(gradients, foundInf);
      else primitives.unscale(gradients, state, foundInf);
    }
    const foundInfs = checked.length === 2 ? flags : [];
    primitives.updateScale({ state, foundInfs, rule, lossFlag, outcomes, tag: i + 1 });
  }
  const ring = await primitives.read(outcomes);
  const told = steps.map((_, i) => ring[i * OUTCOME_WORDS + 7] as number);
  const expected = steps.map(([, allZero]) => allZero);
  if (told.some((word) => word !== 0))
    same("gradients that are all 0", told, expected, (i) => `step ${i + 1}`);
};

export const keepsRing: ContractTest = async ({ primitives }) => {
  const rule = scalerRule("torch", { growthInterval: 40 });
  let expected = initialScaleState(rule);
  const state = stateOf(primitives, wordsOfState(expected, rule));
  const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
  const lossFlag = primitives.allocate(FLAG_WORDS);
  const foundInfs = [primitives.allocate(FLAG_WORDS)];
  const ring = new Float32Array(OUTCOME_RING * OUTCOME_WORDS);
  const tags = [
    ...Array.from({ length: OUTCOME_RING + 44 }, (_, i) => i + 1),
    2 ** 24 - 1,
    2 ** 24,
    1,
  ];
  for (const tag of tags) {
    primitives.updateScale({ state, foundInfs, rule, lossFlag, outcomes, tag });
    const before = expected.scale;
    expected = nextScale(expected, false, rule).state;
    const slot = (tag - 1) % OUTCOME_RING;
    ring.set([tag, 0, before, expected.scale, 0, -1, -1, 0], slot * OUTCOME_WORDS);
  }
  same("outcomes", (await primitives.read(outcomes)).subarray(0, ring.length), ring, ringLabel);
};
