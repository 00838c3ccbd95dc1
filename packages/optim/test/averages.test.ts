import { readFileSync } from "node:fs";
import { bfloat16, float16 } from "@halfstep/formats";
import { cpuTarget } from "@halfstep/kernels";
import { describe, expect, it } from "vitest";
import {
  AverageStateError,
  ExponentialMovingAverage,
  flatTensors,
  LARC,
  OptimizerStateError,
  type ParameterStorage,
  SGD,
  StochasticWeightAverage,
} from "../src/index.js";
import { type AnyTarget, noise, Parameters, split, targets, total } from "./targets.js";

const golden: Readonly<Record<string, readonly (readonly number[])[]>> = JSON.parse(
  readFileSync(new URL("golden/averages.json", import.meta.url), "utf8"),
);
const sequence = golden.sequence as readonly (readonly number[])[];

const storages: readonly (readonly ["float32" | "float16" | "bfloat16", ParameterStorage])[] = [
  ["float32", "float32"],
  ["float16", "master"],
  ["float16", "kahan"],
  ["bfloat16", "remainder"],
  ["bfloat16", "kahan"],
  ["bfloat16", "stochastic"],
  ["bfloat16", "plain"],
];

const formats = { float16, bfloat16 } as const;

/** An optimizer over parameters in some storage, some of whose steps are skipped. */
class Run {
  readonly parameters: Parameters;
  readonly optimizer: SGD<object>;
  readonly #flag: object;

  constructor(
    target: AnyTarget,
    dtype: "float32" | "float16" | "bfloat16",
    storage: ParameterStorage,
  ) {
    const values = noise(total, 1).map((v) => Math.round(v * 127) / 128);
    this.parameters = new Parameters(target, values, dtype);
    this.optimizer = new SGD(target, this.parameters.flat, { lr: 0.003, storage });
    this.#flag = target.allocate(4);
  }

  step(step: number, skips = false): void {
    const { target } = this.parameters;
    this.parameters.setGradients(skips ? noise(total, step).fill(Number.NaN) : noise(total, step));
    target.write({ buffer: this.#flag, offset: 0, length: 1, dtype: "float32" }, [Number(skips)]);
    this.optimizer.step({ foundInf: this.#flag });
  }

  /** The float32 numbers that the storage stands for, put together from what the optimizer saves. */
  async exact(): Promise<number[]> {
    const values = split(await this.parameters.values());
    const [group] = (await this.optimizer.stateDict()).groups;
    const names = Object.keys(group?.state ?? {});
    return values.flatMap((own, i) => {
      const { master, compensation, remainder } = group?.state[names[i] ?? ""] ?? {};
      return own.map((value, j) => {
        if (master) return master[j] as number;
        if (compensation) return Math.fround(value + (compensation[j] as number));
        if (!remainder) return value;
        // The code was rounded to nearest even: the half that is missing says which way.
        const low = remainder[j] as number;
        const code = bfloat16.encode(value);
        return [code, code - 1]
          .map(
            (high) =>
              new Float32Array(Uint32Array.of(((high << 16) | low) >>> 0).buffer)[0] as number,
          )
          .find((number) => bfloat16.encode(number) === code) as number;
      });
    });
  }
}

const averagesOf = async (average: {
  stateDict(): ReturnType<StochasticWeightAverage<object>["stateDict"]>;
}) =>
  (await average.stateDict()).groups.flatMap(({ parameters }) =>
    Object.values(parameters).flatMap((saved) => [...(saved.average ?? [])]),
  );

describe.each(await targets())("averages on the %s", (_, make) => {
  it("are torch's AveragedModel", async () => {
    const target = await make();
    const flat = flatTensors(target, { weight: [3] });
    const values = { buffer: flat.values, offset: 0, length: 3, dtype: "float32" } as const;
    const gradients = { ...values, buffer: flat.gradients };
    const optimizer = new SGD(target, flat, { lr: 1 });
    const averages = {
      swa: new StochasticWeightAverage(optimizer),
      "ema 0.9": new ExponentialMovingAverage(optimizer, { decay: 0.9 }),
      "ema 0.999": new ExponentialMovingAverage(optimizer),
    };
    let worst = 0;
    let before: ArrayLike<number> = [0, 0, 0];
    for (const [step, row] of sequence.entries()) {
      target.write(
        gradients,
        row.map((v, i) => (before[i] as number) - v),
      );
      optimizer.step();
      expect([...(await target.read(values))]).toEqual(row);
      before = row;
      for (const [name, average] of Object.entries(averages)) {
        average.update();
        const want = golden[name]?.[step] as readonly number[];
        for (const [i, v] of (await averagesOf(average)).entries())
          worst = Math.max(worst, Math.abs(v - (want[i] as number)));
      }
    }
    expect(worst).toBeLessThan(1e-6);
    expect(await averages.swa.updates()).toEqual([sequence.length]);
  });

  it.each(storages)(
    "of %s parameters kept as %s take in the exact numbers of applied steps alone",
    async (dtype, storage) => {
      const run = new Run(await make(), dtype, storage);
      const swa = new StochasticWeightAverage(run.optimizer);
      const ema = new ExponentialMovingAverage(run.optimizer, { decay: 0.75, warmUp: true });
      const seen: number[][] = [];
      for (let step = 0; step < 5; step++) {
        const skips = step === 0 || step === 3;
        const before = skips && JSON.stringify([await swa.stateDict(), await ema.stateDict()]);
        run.step(step, skips);
        swa.update();
        ema.update();
        if (skips)
          expect(JSON.stringify([await swa.stateDict(), await ema.stateDict()])).toBe(before);
        else seen.push(await run.exact());
      }
      const mean = seen[0]?.map(
        (_, i) => seen.reduce((sum, row) => sum + (row[i] as number), 0) / 3,
      );
      const moving = seen.reduce((average, row, n) => {
        const decay = Math.min(0.75, (1 + n) / (10 + n));
        return row.map((p, i) => decay * (average[i] as number) + (1 - decay) * p);
      });
      const error = (got: readonly number[], want: readonly number[] = []): number =>
        Math.max(...got.map((v, i) => Math.abs(v - (want[i] as number))));
      expect(error(await averagesOf(swa), mean)).toBeLessThan(3e-7);
      expect(error(await averagesOf(ema), moving)).toBeLessThan(3e-7);
      expect(await ema.updates()).toEqual([3]);
    },
  );

  it.each(storages)(
    "of %s parameters kept as %s go into the model and out of it, and no bit of training changes",
    async (dtype, storage) => {
      const target = await make();
      const [run, other] = [new Run(target, dtype, storage), new Run(target, dtype, storage)];
      const ema = new ExponentialMovingAverage(run.optimizer, { decay: 0.5 });
      for (let step = 0; step < 2; step++) {
        run.step(step);
        ema.update();
      }
      const own = await run.parameters.values();
      const averages = await averagesOf(ema);
      const evaluated = await ema.during(() => {
        expect(() => run.step(2)).toThrow("step() would train from averaged parameters");
        expect(() => ema.update()).toThrow(AverageStateError);
        return run.parameters.values();
      });
      const round = (v: number): number =>
        dtype === "float32" ? v : formats[dtype].decode(formats[dtype].encode(v));
      expect(evaluated).toEqual(averages.map(round));
      expect(evaluated).not.toEqual(own);
      expect(await run.parameters.values()).toEqual(own);
      run.step(2);
      for (let step = 0; step < 3; step++) other.step(step);
      expect(await run.parameters.values()).toEqual(await other.parameters.values());
    },
  );

  it("are saved and go on", async () => {
    const target = await make();
    const run = new Run(target, "float32", "float32");
    const [one, two] = [1, 2].map(
      () => new ExponentialMovingAverage(run.optimizer, { warmUp: true }),
    );
    if (!one || !two) throw new Error("unreachable");
    for (let step = 0; step < 4; step++) {
      run.step(step);
      one.update();
    }
    const saved = JSON.stringify(await one.stateDict(), (_key, value) =>
      value instanceof Float32Array ? [...value] : value,
    );
    two.loadStateDict(JSON.parse(saved));
    run.step(4);
    one.update();
    two.update();
    expect(await two.stateDict()).toEqual(await one.stateDict());

    const swa = new StochasticWeightAverage(run.optimizer);
    expect(() => swa.loadStateDict(JSON.parse(saved))).toThrow(OptimizerStateError);
    const state = await one.stateDict();
    const [group] = state.groups;
    if (!group) throw new Error("unreachable");
    const { weight: _weight, ...rest } = group.parameters;
    for (const [bad, message] of [
      [{ ...state, groups: [] }, "averages of 0 parameter groups, but the optimizer 1"],
      [{ ...state, groups: [{ ...group, updates: 0.5 }] }, "counts 0.5 updates"],
      [{ ...state, groups: [{ ...group, parameters: rest }] }, "no average for weight"],
    ] as const)
      expect(() => one.loadStateDict(bad)).toThrow(message);
    expect(await one.stateDict()).toEqual(state);
  });
});

describe("averages", () => {
  const start = () => {
    const target = cpuTarget() as AnyTarget;
    const parameters = new Parameters(target, noise(total, 1));
    return { target, parameters, optimizer: new SGD(target, parameters.flat, { lr: 0.1 }) };
  };

  it("begin as the parameters are, and look through wrappers and at groups that are added", async () => {
    const { target, parameters, optimizer } = start();
    const swa = new StochasticWeightAverage(new LARC(optimizer));
    expect(await averagesOf(swa)).toEqual(await parameters.values());
    swa.update();
    expect(await swa.updates()).toEqual([0]);
    optimizer.step();
    swa.update();
    const added = new Parameters(target, noise(total, 2));
    optimizer.addParamGroup({ params: added.flat });
    optimizer.step();
    swa.update();
    expect(await swa.updates()).toEqual([2, 1]);
    expect((await averagesOf(swa)).slice(total)).toEqual(await added.values());
  });

  it("name what is wrong", async () => {
    const { optimizer } = start();
    expect(() => new ExponentialMovingAverage(optimizer, { decay: 1.5 })).toThrow("decay is 1.5");
    expect(() => new ExponentialMovingAverage(optimizer, { warmup: true } as never)).toThrow(
      'ExponentialMovingAverage has no option "warmup": it has decay, warmUp',
    );
    expect(() => new ExponentialMovingAverage(optimizer, { warmUp: "no" } as never)).toThrow(
      'warmUp is "no": it must be true or false',
    );
    expect(() => new ExponentialMovingAverage(optimizer, { decay: "0.9" } as never)).toThrow(
      'decay is "0.9": it must be a number',
    );
    const Average = StochasticWeightAverage as new (...given: readonly unknown[]) => object;
    expect(() => new Average(optimizer, { decay: 0.9 })).toThrow(
      "takes no arguments, and was given",
    );
    expect(() => new ExponentialMovingAverage(optimizer, { decay: () => Number.NaN })).toThrow(
      "decay is NaN",
    );
    const [ema, swa] = [
      new ExponentialMovingAverage(optimizer),
      new StochasticWeightAverage(optimizer),
    ];
    expect(() => ema.restore()).toThrow("restore() without swap()");
    ema.swap();
    expect(() => ema.swap()).toThrow("the model has averages already");
    expect(() => swa.swap()).toThrow(AverageStateError);
    expect(() => swa.update()).toThrow("update() would average the averages");
    expect(() => swa.restore()).toThrow("restore() without swap()");
    ema.restore();
    await expect(ema.during(() => Promise.reject(new Error("stopped")))).rejects.toThrow("stopped");
    optimizer.step();
    ema.update();
  });

  it("with a warm-up of ten thousand steps keep a table of them", async () => {
    const { optimizer, parameters } = start();
    const ema = new ExponentialMovingAverage(optimizer, { decay: 0.9999, warmUp: true });
    const plain = new ExponentialMovingAverage(optimizer, {
      decay: (n) => Math.min(0.9999, (1 + n) / (10 + n)),
    });
    parameters.setGradients(noise(total, 4));
    for (let step = 0; step < 40; step++) {
      optimizer.step();
      ema.update();
      plain.update();
    }
    expect(await averagesOf(ema)).toEqual(await averagesOf(plain));
  });
});
