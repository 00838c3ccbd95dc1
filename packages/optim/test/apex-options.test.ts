import type { Binding } from "@halfstep/device";
import type { AmpPrimitives } from "@halfstep/grad-scaler";
import { accumulate } from "@halfstep/kernels";
import { ampPrimitives } from "@halfstep/kernels/amp";
import { describe, expect, it } from "vitest";
import {
  Adagrad,
  Adam,
  AdamW,
  clipGradNormPerGroup,
  FP16Optimizer,
  type FP16OptimizerOptions,
  SGD,
} from "../src/index.js";
import { catalogue } from "./catalogue.js";
import { type AnyTarget, mixed, noise, Parameters, split, targets, total } from "./targets.js";

/** One loss that has gradients in several groups: `backward()` adds those that are given. */
class GroupLoss {
  readonly given: readonly Binding<object>[];
  readonly groups: readonly Parameters[];

  constructor(groups: readonly Parameters[], given: readonly Binding<object>[]) {
    this.groups = groups;
    this.given = given;
  }

  backward(): void {
    for (const [i, { target, flat }] of this.groups.entries()) {
      const input = this.given[i] as Binding<object>;
      target.launch(accumulate({ input, out: { ...input, buffer: flat.gradients } }));
    }
  }

  static primitives(target: AnyTarget): AmpPrimitives<object, GroupLoss> {
    const kernels = ampPrimitives(target);
    return {
      ...kernels,
      scaleLoss: ({ groups, given }, state, options) =>
        new GroupLoss(
          groups,
          given.map((each) => kernels.scaleLoss(each, state, options)),
        ),
    };
  }
}

const sizes = [4, 2];
const lr = 0.01;
const start = [
  [1, 2, -1, 0.5],
  [0.25, -0.5],
];
const gradientsOf = (step: number): number[][] => [
  [3, 4, 0, 12].map((g) => g * (step + 1)),
  [0.3, step === 2 ? 1e-7 : 0.4],
];

/**
 * FusedAdam of apex.contrib in float64, with bias_correction=False and max_grad_norm=1 behind FP16_Optimizer: each group is clipped by
 * its own norm.
 */
function fusedAdam(steps: readonly number[]): number[][] {
  return start.map((values, group) => {
    const decay = group === 0 ? 0.01 : 0;
    const state = values.map((p) => ({ p, m: 0, v: 0 }));
    for (const step of steps) {
      const gradients = gradientsOf(step)[group] as number[];
      const clip = Math.max(Math.hypot(...gradients) + 1e-6, 1);
      for (const [i, each] of state.entries()) {
        const g = (gradients[i] as number) / clip;
        each.m = 0.9 * each.m + 0.1 * g;
        each.v = 0.999 * each.v + 0.001 * g * g;
        each.p -= lr * (each.m / (Math.sqrt(each.v) + 1e-8) + decay * each.p);
      }
    }
    return state.map(({ p }) => p);
  });
}

type Saved = Pick<SGD<object>, "stateDict" | "loadStateDict">;

describe.each(await targets())("apex's options on the %s", (_, make) => {
  /** A model of two groups in float16, and the port of apex's optimizers. */
  async function port(options: FP16OptimizerOptions<object, GroupLoss>) {
    const target = await make();
    const made = (i: number) =>
      new Parameters(target, start[i] as number[], "float16", { [`p${i}`]: [sizes[i] as number] });
    const groups = [0, 1].map(made);
    const losses = [0, 1].map(made);
    const inner = new AdamW(
      target,
      groups.map(({ flat }, i) => ({ params: flat, weightDecay: i === 0 ? 0.01 : 0 })),
      { lr, biasCorrection: false },
    );
    const optimizer = new FP16Optimizer(inner, {
      verbose: false,
      primitives: GroupLoss.primitives(target),
      ...options,
    });
    const step = (gradients: readonly (readonly number[])[]): void => {
      const given = losses.map((each, i) => {
        each.setGradients(gradients[i] as number[]);
        const { gradients: buffer } = each.flat;
        return { buffer, offset: 0, length: sizes[i] as number, dtype: "float32" } as const;
      });
      optimizer.backward(new GroupLoss(groups, given));
      optimizer.updateMasterGrads();
      clipGradNormPerGroup(inner, 1);
      optimizer.step();
      optimizer.zeroGrad();
    };
    const masters = async () =>
      (await optimizer.stateDict()).fp32FromFp16.map((group) =>
        Object.values(group).flatMap((all) => [...all]),
      );
    return { target, groups, optimizer, step, masters };
  }

  const farthest = (got: readonly (readonly number[])[], wanted: readonly (readonly number[])[]) =>
    Math.max(
      ...wanted.flatMap((all, i) => all.map((v, j) => Math.abs(v - (got[i]?.[j] as number)))),
    );

  it("train as contrib's FusedAdam in FP16_Optimizer, which clips each group by its own norm", async () => {
    const { groups, step, masters } = await port({ staticLossScale: 128 });
    for (let i = 0; i < 3; i++) step(gradientsOf(i));
    const got = await masters();
    expect(farthest(got, fusedAdam([0, 1, 2]))).toBeLessThan(1e-6);
    // One norm over both groups would leave 0.1355 here.
    expect(got[1]?.[0]).toBeCloseTo(0.126379, 5);
    const values = await Promise.all(groups.map((group) => group.values()));
    expect(farthest(values, got)).toBeLessThan(2 ** -11);
  });

  it("and skip its steps, from its first scale and down to its floor", async () => {
    const { optimizer, step, masters } = await port({
      dynamicLossScale: true,
      dynamicLossArgs: { initScale: 2 ** 16 },
    });
    const overflow = gradientsOf(0).map((all, i) => (i === 1 ? [Infinity, 0] : all));
    step(gradientsOf(0));
    for (let i = 0; i < 16; i++) step(overflow);
    step(gradientsOf(1));
    const outcomes = await optimizer.scaler.drain();
    const skipped = outcomes.filter(({ status }) => status === "skipped");
    expect([outcomes.length, skipped.length, outcomes[1]?.scaleBefore]).toEqual([18, 16, 2 ** 16]);
    expect(outcomes.at(-1)?.scaleAfter).toBe(1);
    expect(farthest(await masters(), fusedAdam([0, 1]))).toBeLessThan(1e-6);
  });

  it("move masters of float16 parameters as float64 would", async () => {
    const entries = catalogue.filter(
      ({ name, title }) =>
        /^(Adam|AdamW|SGD|Adagrad)$/.test(name) &&
        /wdAfterMomentum|adagradWMode|biasCorrection/.test(title),
    );
    expect(entries).toHaveLength(4);
    for (const entry of entries) {
      const target = await make();
      // Numbers that float16 holds.
      const begin = noise(total, 1).map((p) => Math.round(p * 64) / 64);
      const parameters = new Parameters(target, begin, "float16");
      const optimizer = entry.make(target, parameters.flat, { storage: "master" });
      const reference = entry.reference();
      const shapes = Object.values(mixed);
      const wanted = split(begin).map((values, i) => ({ values, shape: shapes[i] ?? [] }));
      for (let t = 1; t <= 12; t++) {
        parameters.setGradients(noise(total, t));
        optimizer.step();
        reference(wanted, split(noise(total, t)), t, entry.lr);
      }
      const [group] = (await optimizer.stateDict()).groups;
      const masters = Object.values(group?.state ?? {}).map(({ master }) => [...(master ?? [])]);
      const values = wanted.map((each) => each.values);
      expect(farthest(masters, values), entry.title).toBeLessThan(1e-5);
      expect(farthest(split(await parameters.values()), masters)).toBeLessThan(2 ** -10);
    }
  });

  it("are saved with their groups, and those that choose a rule are fixed", async () => {
    const target = await make();
    const flat = () => new Parameters(target, noise(4, 1), "float16", { w: [4] }).flat;
    const loading = async (into: Saved, from: Saved) => {
      const state = await from.stateDict();
      return () => into.loadStateDict(state);
    };
    const adam = new Adam(target, [{ params: flat() }, { params: flat(), biasCorrection: false }]);
    const state = await adam.stateDict();
    expect(state.groups.map(({ options }) => options.biasCorrection)).toEqual([true, false]);
    const other = new Adam(target, [{ params: flat() }, { params: flat() }]);
    other.loadStateDict(state);
    expect(other.paramGroups.map(({ biasCorrection }) => biasCorrection)).toEqual([true, false]);

    const sgd = new SGD(target, flat(), { momentum: 0.9, wdAfterMomentum: true });
    const torchs = new SGD(target, flat(), { momentum: 0.9 });
    const adagrad = new Adagrad(target, flat(), { adagradWMode: true });
    const plain = new Adagrad(target, flat());
    const otherRule = "was saved with the update rule";
    expect(await loading(torchs, sgd)).toThrow(`${otherRule} "sgd momentum decay after"`);
    expect(await loading(plain, adagrad)).toThrow(`${otherRule} "adagrad decoupled"`);
    for (const group of sgd.paramGroups) group.wdAfterMomentum = false;
    for (const group of adagrad.paramGroups) group.adagradWMode = false;
    expect(() => sgd.step()).toThrow('the group was added with "sgd momentum decay after"');
    expect(() => adagrad.step()).toThrow('the group was added with "adagrad decoupled"');
  });

  it("without momentum it does not matter where weight decay is added", async () => {
    const target = await make();
    const parameters = new Parameters(target, noise(4, 1), "float32", { w: [4] });
    const sgd = new SGD(target, parameters.flat, { lr: 0.5, weightDecay: 0.5 });
    const [group] = sgd.paramGroups;
    if (group) group.wdAfterMomentum = true;
    parameters.setGradients([0, 0, 0, 0]);
    sgd.step();
    expect(await parameters.values()).toEqual(noise(4, 1).map((p) => Math.fround(p * 0.75)));
  });

  it("a group may correct the bias from the next step on", async () => {
    const target = await make();
    const parameters = new Parameters(target, [1], "float32", { w: [1] });
    const adam = new Adam(target, parameters.flat, { lr: 0.125, biasCorrection: false });
    parameters.setGradients([1]);
    adam.step();
    // 0.1 / √0.001, where the corrected step is 1.
    const uncorrected = 1 - 0.125 * (0.1 / Math.sqrt(0.001));
    expect((await parameters.values())[0]).toBeCloseTo(uncorrected, 5);
    const [group] = adam.paramGroups;
    if (group) group.biasCorrection = true;
    adam.step();
    expect((await parameters.values())[0]).toBeCloseTo(uncorrected - 0.125, 5);
  });
});
