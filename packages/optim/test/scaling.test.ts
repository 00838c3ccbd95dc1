import type { Launch } from "@halfstep/device";
import { GradScaler } from "@halfstep/grad-scaler";
import { ampPrimitives } from "@halfstep/kernels/amp";
import { describe, expect, it } from "vitest";
import { AdamW, clipGradNorm, linearWarmup, type OptimizerOptions, SGD } from "../src/index.js";
import { basics, type CatalogueEntry, catalogue, ofChosen } from "./catalogue.js";
import type { OptimizerName } from "./references.js";
import { type AnyTarget, matrices, mixed, noise, Parameters, targets, total } from "./targets.js";

const all = await targets();
const cpu = (all[0] as (typeof all)[number])[1];

const shapesOf = ({ isForMatrices }: CatalogueEntry) => (isForMatrices ? matrices : mixed);

/** Values after some steps with gradients that carry a scale, which changes from step to step. */
async function trained(
  make: () => Promise<AnyTarget>,
  entry: CatalogueEntry,
  scaleOf: (step: number) => number,
  options: OptimizerOptions,
): Promise<string> {
  const target = await make();
  const parameters = new Parameters(target, noise(total, 1), "float32", shapesOf(entry));
  const optimizer = entry.make(target, parameters.flat, options);
  const state = { buffer: target.allocate(8), offset: 0, length: 2, dtype: "float32" } as const;
  for (let step = 0; step < 12; step++) {
    const scale = scaleOf(step);
    target.write(state, [scale, 1 / scale]);
    parameters.setGradients(noise(total, step).map((g) => g * scale));
    optimizer.step({ gradScale: state.buffer });
  }
  return JSON.stringify([await parameters.values(), await optimizer.stateDict()]);
}

describe("a scale that is a power of two changes no bit", () => {
  // LAMB and BertAdam clip themselves, by an option of another name.
  const clips = ({ name }: CatalogueEntry): OptimizerOptions =>
    name === "LAMB" || name === "BertAdam" ? {} : { clipGradNorm: 0.7 };
  const differing = async (make: () => Promise<AnyTarget>, entries: readonly CatalogueEntry[]) => {
    const found: string[] = [];
    for (const entry of entries) {
      const plain = await trained(make, entry, () => 1, clips(entry));
      const scaled = await trained(make, entry, (step) => 2 ** (24 - 2 * step), clips(entry));
      if (plain !== scaled) found.push(entry.title);
    }
    return found;
  };

  it("of any optimizer with clipping on the CPU", async () => {
    expect(await differing(cpu, catalogue)).toEqual([]);
  });

  it("and gradients are clipped at all, where a step depends on their size", async () => {
    const isIndifferent = ({ title }: CatalogueEntry): boolean =>
      /^(Muon|Lion|Rprop|LARC SGD|Adafactor)/.test(title);
    const found: string[] = [];
    for (const entry of catalogue) {
      if (!clips(entry).clipGradNorm || isIndifferent(entry)) continue;
      const [clipped, whole] = [
        await trained(cpu, entry, () => 1, clips(entry)),
        await trained(cpu, entry, () => 1, {}),
      ];
      if (clipped === whole) found.push(entry.title);
    }
    expect(found).toEqual([]);
  });

  it.each(all.slice(1))("of each optimizer with clipping on the %s", async (_, make) => {
    expect(await differing(make, basics)).toEqual([]);
  });
});

/** Counts launches by kernel. */
function counting(target: AnyTarget): { readonly target: AnyTarget; readonly launches: string[] } {
  const launches: string[] = [];
  return {
    launches,
    target: {
      ...target,
      launch(launch: Launch<object>) {
        launches.push(launch.kernel.name);
        target.launch(launch);
      },
    },
  };
}

describe("launches of a step", () => {
  const manyShapes = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [`w${i}`, [i % 5, 3]] as const),
  );

  const launchesOf = async (entry: CatalogueEntry, options: OptimizerOptions) => {
    const { target, launches } = counting(await cpu());
    const shapes = entry.isForMatrices ? matrices : manyShapes;
    const parameters = new Parameters(target, [], "bfloat16", shapes);
    const optimizer = entry.make(target, parameters.flat, options);
    const scaler = new GradScaler(ampPrimitives(target), { outcomeSchedule: false });
    scaler.assumeScaled(optimizer);
    launches.length = 0;
    scaler.step(optimizer);
    return launches;
  };

  it("do not depend on the number of parameters: check, norm and clip, control, update and copy are four", async () => {
    const counts: Partial<Record<OptimizerName | "LARC", number>> = {};
    for (const entry of basics) {
      const clip = entry.name === "LAMB" || entry.name === "BertAdam" ? {} : { clipGradNorm: 1 };
      const launches = await launchesOf(entry, { storage: "master", moments: "int8", ...clip });
      counts[entry.larc ? "LARC" : entry.name] = launches.length;
    }
    expect(counts).toEqual(
      ofChosen({
        SGD: 4,
        Adam: 4,
        AdamW: 4,
        Adamax: 4,
        NAdam: 4,
        RAdam: 4,
        RMSprop: 4,
        Adagrad: 4,
        Adadelta: 4,
        ASGD: 4,
        Rprop: 4,
        Lion: 4,
        // The rate or the norm of each parameter takes a walk to measure it and a gathering.
        LAMB: 6,
        NovoGrad: 6,
        // Clips each parameter by itself.
        BertAdam: 5,
        LARC: 6,
        Adafactor: 8,
        // Two matrices, five iterations of three products and a sum; a small product takes two launches.
        Muon: 7 + 2 * 5 * 7,
      }),
    );
  });

  it("are few enough with the scaler's own unscale and clipGradNorm", async () => {
    const { target, launches } = counting(await cpu());
    const parameters = new Parameters(target, [], "float16", manyShapes);
    const optimizer = new AdamW(target, parameters.flat);
    const scaler = new GradScaler(ampPrimitives(target), { outcomeSchedule: false });
    scaler.assumeScaled(optimizer);
    launches.length = 0;
    scaler.unscale(optimizer);
    clipGradNorm(optimizer, 1);
    scaler.step(optimizer);
    expect(launches.length).toBeLessThanOrEqual(6);
  });
});

describe.each(all)("on the %s", (_, make) => {
  it("clipGradNorm as an option clips as the function does, over all groups", async () => {
    const target = await make();
    const results: number[][] = [];
    for (const isOption of [true, false]) {
      const [first, second] = [1, 2].map((seed) => new Parameters(target, noise(total, seed)));
      if (!first || !second) throw new Error("unreachable");
      const optimizer = new SGD(
        target,
        [{ params: first.flat }, { params: second.flat, lr: 0.5 }],
        {
          lr: 0.25,
          ...(isOption && { clipGradNorm: 2 }),
        },
      );
      for (const [i, p] of [first, second].entries()) p.setGradients(noise(total, 3 + i));
      if (!isOption) clipGradNorm(optimizer, 2);
      optimizer.step();
      results.push([...(await first.values()), ...(await second.values())]);
    }
    const [got, want] = results as [number[], number[]];
    expect(Math.max(...got.map((v, i) => Math.abs(v - (want[i] as number))))).toBeLessThan(1e-6);
  });

  it("a group that is added in mid-training starts at step 0, and moves nothing of others", async () => {
    const target = await make();
    const gradients = (step: number): number[] => noise(total, step);
    const lr = linearWarmup({ lr: 0.01, warmupSteps: 4 });
    const alone = new Parameters(target, noise(total, 1));
    const aloneOptimizer = new AdamW(target, alone.flat, { lr });
    const [first, second] = [1, 1].map((seed) => new Parameters(target, noise(total, seed)));
    if (!first || !second) throw new Error("unreachable");
    const optimizer = new AdamW(target, first.flat, { lr });
    const groups = optimizer.paramGroups;
    const histories: number[][] = [];
    for (let step = 0; step < 8; step++) {
      alone.setGradients(gradients(step));
      aloneOptimizer.step();
      histories.push(await alone.values());
      if (step === 3) optimizer.addParamGroup({ params: second.flat });
      first.setGradients(gradients(step));
      // The second group sees what the first saw when it began.
      if (step >= 3) second.setGradients(gradients(step - 3));
      optimizer.step();
    }
    expect(await first.values()).toEqual(histories[7]);
    expect(await second.values()).toEqual(histories[4]);
    expect(await optimizer.appliedSteps()).toEqual([8, 5]);
    expect(groups.map(({ params }) => params)).toEqual([first.flat, second.flat]);
  });
});
