import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import {
  initialScaleState,
  nextScaleState,
  type ScaleRule,
  type ScalerPreset,
  type ScaleState,
  scalerRule,
} from "@halfstep/grad-scaler";
import {
  scaleRuleFields,
  scaleRuleOfValues,
  scaleRuleValues,
  scaleRuleWgsl,
  underflowWgsl,
} from "@halfstep/grad-scaler/wgsl";
import { describe, expect, it } from "vitest";
import { defineKernel, linearMain, linearWorkgroups } from "../src/kernel.js";
import { runOnGpu } from "./harness.js";

const traces = 1000;
const steps = 192;
const words = 8;
const bins = 256;

/**
 * The rule as it is in `updateScale`, over a thousand traces at once: invocation i follows trace i, whose bits say which
 * steps overflow, and notes its state every 32 steps. Each eighth step of a rule with `targetUnderflow` decides by the
 * same exponents.
 */
const followTraces = defineKernel({
  name: "follow-traces",
  bindings: [
    { name: "overflows", access: "read", unit: 1, dtypes: ["uint32"] },
    { name: "exponents", access: "read", unit: 1, dtypes: ["uint32"] },
    { name: "states", access: "readwrite", unit: 1, dtypes: ["uint32"] },
  ],
  scalars: scaleRuleFields.map((field) => ({ ...field, runtime: true })),
  body: () => `${scaleRuleWgsl}${underflowWgsl}
${linearMain()}
  if (index >= ${traces}u) { return; }
  let rule = ScaleRule(${scaleRuleFields.map(({ name }) => `s.${name}`).join(", ")});
  let shift = underflowShift(rule);
  let first = index * ${(steps / 32) * words}u;
  var state: ScaleState;
  state.scale = at_states(first);
  state.growth = bitcast<f32>(at_states(first + 2u));
  state.tolerated = bitcast<f32>(at_states(first + 3u));
  state.steps = bitcast<f32>(at_states(first + 4u));
  state.overflows = bitcast<f32>(at_states(first + 5u));
  var collapses = 0.0;
  for (var step = 0u; step < ${steps}u; step++) {
    let bits = at_overflows(index * ${steps / 32}u + step / 32u);
    let found = ((bits >> (step & 31u)) & 1u) == 1u;
    state = nextScale(state, found, (step & 7u) == 7u, shift, rule);
    collapses += f32(state.isCollapse);
    if ((step & 31u) == 31u) {
      let at = first + step / 32u * ${words}u;
      store_states(at, state.scale);
      store_states(at + 1u, quotient(0x3f800000u, state.scale));
      store_states(at + 2u, bitcast<u32>(state.growth));
      store_states(at + 3u, bitcast<u32>(state.tolerated));
      store_states(at + 4u, bitcast<u32>(state.steps));
      store_states(at + 5u, bitcast<u32>(state.overflows));
      store_states(at + 6u, bitcast<u32>(collapses));
    }
  }
}
`,
  workgroups: () => linearWorkgroups(traces),
  reference: () => {},
});

/** Traces of every share of overflows, in long and short runs. */
function randomTraces(seed: number): Uint32Array {
  let state = seed;
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const bits = new Uint32Array((traces * steps) / 32);
  for (let i = 0; i < traces; i++) {
    let share = random();
    for (let step = 0; step < steps; step++) {
      if (random() < 0.03) share = random() ** 2;
      if (random() < share) {
        const at = (i * steps + step) >> 5;
        bits[at] = (bits[at] as number) | (1 << (step & 31));
      }
    }
  }
  return bits;
}

/** A state as the words of a state buffer. Those that a rule does not use are not compared. */
const wordsOf = ({ scale, growthTracker, ...state }: ScaleState): (number | undefined)[] => [
  scale,
  Math.fround(1 / scale),
  growthTracker,
  state.hysteresisTracker,
  state.stepsSinceRescale,
  state.overflowsSinceRescale,
];

function statesOnHost(rule: ScaleRule, overflows: Uint32Array, exponents: Uint32Array) {
  const notes: (number | undefined)[][] = [];
  for (let i = 0; i < traces; i++) {
    let state = initialScaleState(rule);
    for (let step = 0; step < steps; step++) {
      const found = ((overflows[(i * steps + step) >> 5] as number) >>> (step & 31)) & 1;
      const isDecision = rule.targetUnderflow > 0 && (step & 7) === 7;
      state = nextScaleState(state, found === 1, rule, isDecision ? exponents : undefined);
      if ((step & 31) === 31) notes.push(wordsOf(state));
    }
  }
  return notes;
}

const bitsOf = (value: number): number => new Uint32Array(Float32Array.of(value).buffer)[0] ?? 0;

const short = { growthInterval: 4 };
/** A third, nearly: its product with 3 lies halfway between float32 numbers once it is rounded to float64, and above before. */
const third = (1 + 2 ** -24) / 3;
const odd = { growthFactor: 1.7, backoffFactor: 0.3, growthInterval: 3 };
const rules: [label: string, rule: ScaleRule][] = [
  ...(["torch", "apex", "apexFp16Utils", "deepspeedFp16Optimizer", "jmp", "keras"] as const).map(
    (preset): [string, ScaleRule] => [preset, scalerRule(preset, short)],
  ),
  ...(["apexHysteresis", "megatron", "deepspeed"] as const).map((preset): [string, ScaleRule] => [
    preset,
    scalerRule(preset, { ...short, hysteresis: 3 }),
  ]),
  ["fairseq", scalerRule("fairseq", { ...short, tolerance: 0.3 })],
  ["static", scalerRule("static")],
  ["paper", scalerRule("paper", short)],
  ["the default", scalerRule(undefined, short)],
  ["odd factors from 1e38", scalerRule("torch", { ...odd, initScale: 1e38 })],
  ["odd factors from 1e-36", scalerRule("torch", { ...odd, initScale: 1e-36 })],
  [
    "a product that is rounded twice",
    scalerRule("torch", { growthFactor: 3, backoffFactor: third, initScale: 3, growthInterval: 1 }),
  ],
  [
    "targetUnderflow",
    scalerRule(undefined, { initScale: 2 ** -3, targetUnderflow: 0.1, growthInterval: 2 }),
  ],
];

/** Exponents that ask for 2^7. */
const exponents = new Uint32Array(bins);
exponents.set([10, 60, 30], 127 - 32);
exponents[127] = 5;

const overflows = randomTraces(1);

it("the rule survives being made into scalars", () => {
  for (const [, rule] of rules) {
    const { initScale: _, raiseAtFloor: __, ...decisive } = rule;
    expect(scaleRuleOfValues(scaleRuleValues(rule))).toMatchObject(decisive);
  }
});

it("every preset is among the rules", () => {
  const presets: readonly ScalerPreset[] = [
    ...(["torch", "apex", "apexHysteresis", "apexFp16Utils", "megatron", "deepspeed"] as const),
    ...(["deepspeedFp16Optimizer", "fairseq", "jmp", "keras", "static", "paper"] as const),
  ];
  expect(presets.filter((preset) => !rules.some(([label]) => label === preset))).toEqual([]);
});

const tiers = await testTiers();

describe("1,000 random traces equal nextScaleState bit for bit", () => {
  const host = new Map(
    rules.map(([label, rule]) => [label, statesOnHost(rule, overflows, exponents)]),
  );
  const compare = (label: string, found: (note: number, word: number) => number): void => {
    const wrong: string[] = [];
    const scales = new Set<number | undefined>();
    for (const [note, state] of (host.get(label) ?? []).entries()) {
      scales.add(state[0]);
      for (const [word, value] of state.entries()) {
        if (value !== undefined && bitsOf(value) !== found(note, word))
          wrong.push(
            `note ${note}, word ${word}: ${found(note, word)} instead of ${bitsOf(value)}`,
          );
      }
    }
    expect(wrong.slice(0, 5)).toEqual([]);
    expect(scales.size).toBeGreaterThan(label === "static" ? 0 : 10);
  };

  describe.each(tiers)("on the GPU, %s tier", (tier) => {
    it.each(rules)("%s", async (label, rule) => {
      const device = await requestTestDevice({ tier });
      const perTrace = (steps / 32) * words;
      const states = new Uint32Array(traces * perTrace);
      for (let i = 0; i < traces; i++)
        for (const [word, value] of [...wordsOf(initialScaleState(rule))].entries())
          states[i * perTrace + word] = bitsOf(value ?? (word === 3 ? rule.hysteresis : 0));
      const result = await runOnGpu(
        device,
        {
          overflows: { values: overflows, dtype: "uint32" },
          exponents: { values: exponents, dtype: "uint32" },
          states: { values: states, dtype: "uint32" },
        },
        (target, bindings) => {
          target.launch({
            kernel: followTraces,
            bindings: [bindings.overflows, bindings.exponents, bindings.states],
            scalars: scaleRuleValues(rule),
          });
        },
      );
      compare(label, (note, word) => result.states[note * words + word] as number);
    });
  });
});
