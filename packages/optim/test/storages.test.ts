import { describe, expect, it } from "vitest";
import { AdamW, type MomentFormat, type ParameterStorage, SGD } from "../src/index.js";
import { type AnyOptimizer, basics, type CatalogueEntry } from "./catalogue.js";
import { type AnyTarget, matrices, mixed, noise, Parameters, targets, total } from "./targets.js";

type Half = "float16" | "bfloat16";

interface Setting {
  readonly dtype: "float32" | Half;
  readonly storage: ParameterStorage;
  readonly moments: MomentFormat;
}

/** Every storage, with each format of moments at least once. */
const settings: readonly Setting[] = [
  { dtype: "float32", storage: "float32", moments: "bfloat16" },
  { dtype: "float32", storage: "float32", moments: "int8" },
  { dtype: "float16", storage: "master", moments: "float32" },
  { dtype: "bfloat16", storage: "master", moments: "int8" },
  { dtype: "bfloat16", storage: "remainder", moments: "float32" },
  { dtype: "bfloat16", storage: "remainder", moments: "int8" },
  { dtype: "float16", storage: "kahan", moments: "bfloat16" },
  { dtype: "bfloat16", storage: "kahan", moments: "int8" },
  { dtype: "bfloat16", storage: "stochastic", moments: "float32" },
  { dtype: "bfloat16", storage: "stochastic", moments: "int8" },
  { dtype: "bfloat16", storage: "plain", moments: "float32" },
];

const titleOf = (entry: CatalogueEntry, { dtype, storage, moments }: Setting): string =>
  `${entry.title}: ${dtype} ${storage}, moments ${moments}`;

/** Multiples of 2^-7 in [-1, 1): exact in every storage. */
const exact = (seed: number): number[] => noise(total, seed).map((v) => Math.round(v * 127) / 128);

const gradients = (step: number): number[] =>
  noise(total, step).map((v, i) => (i % 13 === 5 ? 0 : v));

class Run {
  readonly parameters: Parameters;
  readonly optimizer: AnyOptimizer;
  readonly #flag: { buffer: object; offset: number; length: number; dtype: "float32" };

  constructor(target: AnyTarget, entry: CatalogueEntry, { dtype, storage, moments }: Setting) {
    const shapes = entry.isForMatrices ? matrices : mixed;
    this.parameters = new Parameters(target, exact(1), dtype, shapes);
    this.optimizer = entry.make(target, this.parameters.flat, { storage, moments, seed: 2 ** 40 });
    this.#flag = { buffer: target.allocate(4), offset: 0, length: 1, dtype: "float32" };
  }

  step(step: number, foundInf = false): void {
    const own = gradients(step);
    this.parameters.setGradients(foundInf ? own.fill(Number.NaN) : own);
    this.parameters.target.write(this.#flag, [Number(foundInf)]);
    this.optimizer.step({ foundInf: this.#flag.buffer });
  }

  steps(from: number, to: number): this {
    for (let step = from; step < to; step++) this.step(step);
    return this;
  }

  /** Everything that a skipped step must leave alone, as text. */
  async bits(): Promise<string> {
    return JSON.stringify([await this.parameters.values(), await this.optimizer.stateDict()]);
  }
}

const all = await targets();
const cpu = (all[0] as (typeof all)[number])[1];

describe("every optimizer in every storage, on the CPU", () => {
  it("a skipped step changes no bit and draws no random number", async () => {
    const target = await cpu();
    const found: string[] = [];
    for (const entry of basics)
      for (const setting of settings) {
        const run = new Run(target, entry, setting).steps(0, 2);
        const before = await run.bits();
        for (let i = 0; i < 2; i++) run.step(9, true);
        if ((await run.bits()) !== before) found.push(titleOf(entry, setting));
        const unbroken = new Run(target, entry, setting).steps(0, 4);
        if ((await run.steps(2, 4).bits()) !== (await unbroken.bits()))
          found.push(`${titleOf(entry, setting)}, afterwards`);
      }
    expect(found).toEqual([]);
  });

  it("goes on from a state that went through JSON, bit for bit", async () => {
    const target = await cpu();
    const found: string[] = [];
    for (const entry of basics)
      for (const setting of settings) {
        const unbroken = new Run(target, entry, setting).steps(0, 3);
        const saved = JSON.stringify(await unbroken.optimizer.stateDict(), (_key, value) =>
          ArrayBuffer.isView(value) ? [...(value as Float32Array)] : value,
        );
        const resumed = new Run(target, entry, setting);
        resumed.parameters.setValues(await unbroken.parameters.values());
        resumed.optimizer.loadStateDict(JSON.parse(saved));
        const [want, got] = [unbroken.steps(3, 6), resumed.steps(3, 6)];
        if ((await want.bits()) !== (await got.bits())) found.push(titleOf(entry, setting));
      }
    expect(found).toEqual([]);
  });

  it("a remainder makes bfloat16 training float32 training", async () => {
    const target = await cpu();
    const found: string[] = [];
    for (const entry of basics) {
      const common = { moments: "float32" } as const;
      const single = new Run(target, entry, { dtype: "float32", storage: "float32", ...common });
      const split = new Run(target, entry, { dtype: "bfloat16", storage: "remainder", ...common });
      const want = await single.steps(0, 30).parameters.values();
      const codes = await split.steps(0, 30).parameters.values();
      const [group] = (await split.optimizer.stateDict()).groups;
      const remainders = Object.values(group?.state ?? {}).flatMap((state) => [
        ...(state.remainder ?? []),
      ]);
      const got = codes.map((code, i) => joined(code, remainders[i] as number));
      const differing = got.filter((v, i) => !Object.is(v, want[i])).length;
      if (differing > 0) found.push(`${entry.title}: ${differing} of ${total}`);
      if (want.every((v, i) => v === codes[i])) found.push(`${entry.title}: nothing remains`);
    }
    expect(found).toEqual([]);
  });

  it("compensation follows float32 where plain rounding loses the way", async () => {
    const target = await cpu();
    const distances: Record<string, number> = {};
    for (const dtype of ["float16", "bfloat16"] as const)
      for (const storage of ["kahan", "plain"] as const) {
        const lr = dtype === "float16" ? 2e-5 : 2e-4;
        const walk = async (setting: Setting): Promise<number[]> => {
          const parameters = new Parameters(target, exact(1), setting.dtype);
          const optimizer = new AdamW(target, parameters.flat, { lr, storage: setting.storage });
          for (let step = 0; step < 300; step++) {
            parameters.setGradients(gradients(step).map((v, i) => v + Math.sin(i)));
            optimizer.step();
          }
          return parameters.values();
        };
        const want = await walk({ dtype: "float32", storage: "float32", moments: "float32" });
        const got = await walk({ dtype, storage, moments: "float32" });
        const path = mean(want.map((v, i) => v - (exact(1)[i] as number)));
        distances[`${dtype} ${storage}`] = mean(got.map((v, i) => v - (want[i] as number))) / path;
      }
    expect(distances["float16 kahan"]).toBeLessThan(0.1);
    expect(distances["bfloat16 kahan"]).toBeLessThan(0.1);
    expect(distances["float16 plain"]).toBeGreaterThan(0.3);
    expect(distances["bfloat16 plain"]).toBeGreaterThan(0.3);
  });

  it("stochastic rounding is right on average, and its own for each seed and group", async () => {
    const target = await cpu();
    const step = 2 ** -12;
    const walk = async (seed: number, steps: number): Promise<number[]> => {
      const parameters = new Parameters(target, noise(total, 1).fill(1), "bfloat16");
      const other = new Parameters(target, noise(total, 1).fill(1), "bfloat16");
      const groups = [{ params: parameters.flat }, { params: other.flat }];
      const optimizer = new SGD(target, groups, { lr: step, storage: "stochastic", seed });
      for (const p of [parameters, other]) p.setGradients(noise(total, 1).fill(-1));
      for (let i = 0; i < steps; i++) optimizer.step();
      return [...(await parameters.values()), ...(await other.values())];
    };
    const values = await walk(1, 64);
    // 64 steps of 2^-12 are two units in the last place, 2^-7; each is taken with probability 2^-5.
    const deviation = Math.sqrt(64 * 2 ** -5 * (1 - 2 ** -5)) * 2 ** -7;
    const average = values.reduce((sum, v) => sum + v, 0) / values.length;
    const error = Math.abs(average - (1 + 64 * step));
    expect(error).toBeLessThan((5 * deviation) / Math.sqrt(values.length));
    expect(await walk(1, 64)).toEqual(values);
    expect(await walk(2, 64)).not.toEqual(values);
    expect(await walk(1 + 2 ** 32, 64)).not.toEqual(values);
    expect(values.slice(0, total)).not.toEqual(values.slice(total));
  });

  it("moments of fewer bits stay near those of float32", async () => {
    const target = await cpu();
    const found: string[] = [];
    for (const entry of basics)
      for (const moments of ["bfloat16", "int8"] as const) {
        const walk = async (format: MomentFormat): Promise<number[]> => {
          const setting = { dtype: "float32", storage: "float32", moments: format } as const;
          return new Run(target, entry, setting).steps(0, 100).parameters.values();
        };
        const [want, got] = [await walk("float32"), await walk(moments)];
        const path = mean(want.map((v, i) => v - (exact(1)[i] as number)));
        const distance = mean(got.map((v, i) => v - (want[i] as number))) / path;
        if (!(distance < (moments === "int8" ? 0.25 : 0.05)))
          found.push(`${entry.title}, ${moments}: ${distance}`);
      }
    expect(found).toEqual([]);
  });

  it("moments of fewer bits forget large gradients as those of float32 do", async () => {
    const target = await cpu();
    const distances: Record<string, number> = {};
    const walk = async (moments: MomentFormat): Promise<number[]> => {
      const parameters = new Parameters(target, exact(1));
      const optimizer = new AdamW(target, parameters.flat, { lr: 1e-3, weightDecay: 0, moments });
      let before: number[] = [];
      for (let step = 0; step < 1000; step++) {
        // The first hundred are 64 times larger, but not for every third element, so that blocks see both.
        const own = gradients(step).map(
          (v, i) => (v + 1) * (step < 100 && i % 3 > 0 ? 1 : 2 ** -6),
        );
        parameters.setGradients(own);
        optimizer.step();
        if (step === 600) before = await parameters.values();
      }
      return (await parameters.values()).map((v, i) => v - (before[i] as number));
    };
    const want = await walk("float32");
    for (const moments of ["bfloat16", "int8"] as const) {
      const got = await walk(moments);
      distances[moments] = mean(got.map((v, i) => v - (want[i] as number))) / mean(want);
    }
    expect(distances.bfloat16).toBeLessThan(0.05);
    expect(distances.int8).toBeLessThan(0.15);
  });

  it("8-bit moments of a parameter without gradient keep their bits", async () => {
    const target = await cpu();
    const parameters = new Parameters(target, exact(1));
    let present = [true, true, true];
    const flat = { ...parameters.flat, hasGradient: (i: number) => present[i] as boolean };
    const optimizer = new AdamW(target, flat, { moments: "int8" });
    const step = async (seed: number) => {
      parameters.setGradients(gradients(seed));
      optimizer.step();
      return (await optimizer.stateDict()).groups[0]?.state ?? {};
    };
    const before = await step(1);
    present = [true, false, true];
    const after = await step(2);
    expect(after.bias).toEqual(before.bias);
    expect(after.weight).not.toEqual(before.weight);
    expect(before.weight?.expAvg).toBeInstanceOf(Uint8Array);
    expect(before.weight?.["expAvg.peaks"]).toHaveLength(1);
  });

  it("zero and tiny gradients of float16 parameters do no harm", async () => {
    const target = await cpu();
    const found: string[] = [];
    for (const entry of basics)
      for (const storage of ["master", "kahan", "plain"] as const)
        for (const g of [0, 1e-4, 1e-7]) {
          const shapes = entry.isForMatrices ? matrices : mixed;
          const parameters = new Parameters(target, exact(1), "float16", shapes);
          const optimizer = entry.make(target, parameters.flat, { storage });
          for (let step = 0; step < 20; step++) {
            parameters.setGradients(noise(total, 1).fill(g));
            optimizer.step();
          }
          const values = await parameters.values();
          const moved = Math.max(...values.map((v, i) => Math.abs(v - (exact(1)[i] as number))));
          const most = entry.name === "Adafactor" || entry.name === "RMSprop" ? 1 : 0.5;
          if (!(moved <= most)) found.push(`${entry.title}, ${storage}, g = ${g}: ${moved}`);
        }
    expect(found).toEqual([]);
  });

  it("refuses a state of another storage or format, and storages that do not fit", async () => {
    const target = await cpu();
    const make = (dtype: Setting["dtype"], storage?: ParameterStorage, moments?: MomentFormat) =>
      new AdamW(target, new Parameters(target, exact(1), dtype).flat, {
        ...(storage && { storage }),
        ...(moments && { moments }),
      });
    const saved = await make("bfloat16", "remainder", "int8").stateDict();
    expect(() => make("bfloat16", "kahan", "int8").loadStateDict(saved)).toThrow(
      'the state of group 0 was saved with storage "remainder", but the optimizer has "kahan"',
    );
    expect(() => make("bfloat16", "remainder", "bfloat16").loadStateDict(saved)).toThrow(
      'saved with moments "int8", but the optimizer has "bfloat16": make it as the one',
    );
    const { flat: values } = new Parameters(target, exact(1));
    const largest = await new AdamW(target, values, { amsgrad: true }).stateDict();
    expect(() => make("float32").loadStateDict(largest)).toThrow(
      'saved with the update rule "adamw amsgrad", but the optimizer has "adamw"',
    );
    expect(() => make("float16", "remainder")).toThrow("is for bfloat16 values");
    expect(() => make("float16", "stochastic")).toThrow("is for bfloat16 values");
    expect(() => make("bfloat16", "float32")).toThrow("is stored as bfloat16");
    expect(() => make("float32", "half" as ParameterStorage)).toThrow('storage is "half"');
    expect(() => make("float32", "master", "int4" as MomentFormat)).toThrow('moments is "int4"');
    const { flat } = new Parameters(target, exact(1));
    expect(() => new AdamW(target, flat, { seed: -1 })).toThrow("seed is -1");
    expect((await make("float32", "kahan").stateDict()).groups[0]?.storage).toBe("float32");
  });
});

describe.each(all.slice(1))("optimizers in storages on the %s", (_, make) => {
  it("do what they do on the CPU, and a skipped step nothing", async () => {
    const [target, host] = [await make(), await cpu()];
    const found: string[] = [];
    for (const [i, entry] of basics.entries()) {
      const setting = settings[i % settings.length] as Setting;
      const [run, reference] = [new Run(target, entry, setting), new Run(host, entry, setting)];
      run.steps(0, 4);
      const before = await run.bits();
      run.step(9, true);
      if ((await run.bits()) !== before) found.push(`${titleOf(entry, setting)}: skipped`);
      const want = await reference.steps(0, 5).parameters.values();
      const got = await run.steps(4, 5).parameters.values();
      // A unit in the last place of the storage, and what a code of an 8-bit moment is worth in a step.
      const ulp = { float32: 2 ** -20, float16: 2 ** -10, bfloat16: 2 ** -7 }[setting.dtype];
      const slack = setting.moments === "float32" ? 1e-6 : entry.lr;
      const off = got.filter((v, e) => {
        const w = want[e] as number;
        return !(Math.abs(v - w) <= ulp * Math.abs(w) + slack);
      });
      if (off.length > 0) found.push(`${titleOf(entry, setting)}: ${off.length} differ`);
    }
    expect(found).toEqual([]);
  });
});

const mean = (x: readonly number[]): number =>
  x.reduce((sum, v) => sum + Math.abs(v), 0) / x.length;

/** The float32 of a bfloat16 number and its remainder. */
function joined(code: number, remainder: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, code);
  const upper = (view.getUint32(0) >>> 16) - (remainder >>> 15);
  view.setUint32(0, ((upper << 16) | remainder) >>> 0);
  return view.getFloat32(0);
}
