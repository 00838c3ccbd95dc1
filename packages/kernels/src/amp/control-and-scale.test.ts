import type { Binding, Launch } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { type ScaleRule, scalerRule } from "@halfstep/grad-scaler";
import { describe, expect, it } from "vitest";
import { type Launches, runOnCpu, runOnGpu, testValues } from "../../test/harness.js";
import { flagBits } from "../found-flag.js";
import { partialsEach } from "../optimizers/clip-partials.js";
import { stepControl } from "../optimizers/step-control.js";
import { controlAndScale } from "./control-and-scale.js";
import { updateScale } from "./update-scale-by-exponents.js";

interface Case {
  readonly rule: ScaleRule;
  readonly clips?: boolean;
  readonly foundInf?: number;
  readonly lossFlag?: number;
  readonly tag?: number;
  readonly newScale?: number;
}

/** Scale, reciprocal, growth and hysteresis trackers, steps and overflows since the scale changed. */
const state = [2 ** 12, 2 ** -12, 1, 1, 9, 2, 0, 0];

const operandsOf = ({ foundInf = 0, lossFlag = 0 }: Case) => ({
  foundInf: { values: [foundInf], dtype: "uint32" as const },
  lossFlag: { values: [lossFlag], dtype: "uint32" as const },
  state: { values: new Uint32Array(Float32Array.from(state).buffer), dtype: "uint32" as const },
  applied: { values: [65_539], dtype: "uint32" as const },
  table: { values: [1, 2, 3, 4, 0.5, 6, 7, 8] },
  partials: { values: testValues(partialsEach, 3).map(Math.abs) },
  control: { values: 12 },
  outcomes: { values: 2048, dtype: "uint32" as const },
});

type Operands = ReturnType<typeof operandsOf>;

/** The launches of a case: the control of the optimizer's step, and the update of the scale. */
function pairOf<B>(
  { clips = false, rule, tag = 3, newScale }: Case,
  named: Readonly<Record<keyof Operands, Binding<B>>>,
): readonly [control: Launch<B>, update: Launch<B>] {
  const { table, control, partials } = named;
  const [foundInf, lossFlag] = [named.foundInf.buffer, named.lossFlag.buffer];
  const [state, applied, outcomes] = [
    named.state.buffer,
    named.applied.buffer,
    named.outcomes.buffer,
  ];
  const clip = { partials, parts: 1, maxNorm: 3, eps: 1e-6 };
  const buffers = { foundInf, scale: state, applied, table, control };
  return [
    stepControl(buffers, { lr: 0.25, ...(clips && { clip }) }),
    updateScale({ state, foundInf, lossFlag, outcomes }, { rule, tag, newScale }),
  ];
}

const separate =
  (each: Case): Launches<Operands> =>
  (target, named) => {
    for (const launch of pairOf(each, named)) target.launch(launch);
  };

const joined =
  (each: Case): Launches<Operands> =>
  (target, named) => {
    const launch = controlAndScale(...pairOf(each, named));
    if (!launch) throw new Error("the two are not one launch");
    target.launch(launch);
  };

const rules = [
  scalerRule(),
  scalerRule("torch", { growthInterval: 2 }),
  scalerRule("megatron"),
  scalerRule(undefined, { initScale: 2 ** 12, tolerance: 0.5, maxScale: 2 ** 12 }),
  scalerRule(undefined, { dynamic: false }),
];

const cases: readonly Case[] = rules.flatMap((rule) =>
  [false, true].flatMap((clips) => [
    { rule, clips },
    { rule, clips, foundInf: flagBits, tag: 0 },
    { rule, clips, foundInf: flagBits, lossFlag: flagBits, tag: 257 },
    { rule, clips, newScale: 64 },
  ]),
);

describe("one launch does what the two do", async () => {
  it("on the CPU", () => {
    for (const each of cases)
      expect(runOnCpu(operandsOf(each), joined(each))).toEqual(
        runOnCpu(operandsOf(each), separate(each)),
      );
  });

  it.each(await testTiers())("on the %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    for (const each of cases) {
      const one = await runOnGpu(device, operandsOf(each), joined(each));
      expect(one).toEqual(await runOnGpu(device, operandsOf(each), separate(each)));
      // It did something: flags are cleared, and steps that are not skipped are counted.
      const { foundInf, lossFlag, applied } = one;
      expect([foundInf[0], lossFlag[0], applied[0]]).toEqual([
        0,
        0,
        each.foundInf ? 65_539 : 65_540,
      ]);
    }
  });
});

describe("there is one launch", () => {
  const binding = (): Binding<object> => ({ buffer: {}, offset: 0, length: 12, dtype: "float32" });
  const named = (): Record<keyof Operands, Binding<object>> => ({
    ...{ foundInf: binding(), lossFlag: binding(), state: binding(), applied: binding() },
    ...{ table: binding(), partials: binding(), control: binding(), outcomes: binding() },
  });
  const each: Case = { rule: scalerRule() };

  it("of eight bindings at most", () => {
    const [control, update] = pairOf({ ...each, clips: true }, named());
    expect(controlAndScale(control, update)?.bindings).toHaveLength(8);
  });

  it("for one flag and one scale, and no norm", () => {
    const own = named();
    const [control, update] = pairOf(each, own);
    for (const other of ["foundInf", "state"] as const) {
      const [, elsewhere] = pairOf(each, { ...own, [other]: binding() });
      expect(controlAndScale(control, elsewhere)).toBeUndefined();
    }
    const { foundInf, lossFlag, state, outcomes } = own;
    const squares = { buffer: {}, partials: 64 };
    const summing = updateScale(
      {
        ...{ foundInf: foundInf.buffer, lossFlag: lossFlag.buffer, state: state.buffer },
        ...{ outcomes: outcomes.buffer, squares },
      },
      { rule: each.rule, tag: 1 },
    );
    expect(controlAndScale(control, summing)).toBeUndefined();
    expect(controlAndScale(update, update)).toBeUndefined();
  });
});
