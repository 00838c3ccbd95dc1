import { describe, expect, it } from "vitest";
import {
  Adafactor,
  Adagrad,
  AdamW,
  BertAdam,
  clipGradNorm,
  flatTensors,
  LAMB,
  LARC,
  Muon,
  NonFiniteGradientError,
  NovoGrad,
  OptimizerStateError,
  oneCycle,
  RMSprop,
  type Schedule,
  SGD,
} from "../src/index.js";
import { classes } from "./catalogue.js";
import { type AnyTarget, noise, Parameters, targets, total } from "./targets.js";

const scalar = (target: AnyTarget, length = 1) =>
  ({ buffer: target.allocate(length * 4), offset: 0, length, dtype: "float32" }) as const;

/** The same gradients for the same step, whatever came before. */
const run = (
  optimizer: { step(): void },
  parameters: Parameters,
  from: number,
  to: number,
): void => {
  for (let step = from; step < to; step++) {
    parameters.setGradients(noise(total, step));
    optimizer.step();
  }
};

describe.each(await targets())("optimizers on the %s", (_, make) => {
  it("a skipped step changes no bit of parameters, masters, moments or counts", async () => {
    const target = await make();
    const found: string[] = [];
    for (const dtype of ["float32", "float16", "bfloat16"] as const)
      for (const name of ["AdamW", "SGD"] as const) {
        const parameters = new Parameters(target, noise(total, 1), dtype);
        const lr = oneCycle({ maxLr: 0.1, totalSteps: 20 });
        const optimizer =
          name === "AdamW"
            ? new AdamW(target, parameters.flat, { lr, amsgrad: true })
            : new SGD(target, parameters.flat, { lr, momentum: 0.9 });
        const flag = scalar(target);
        for (const applied of [0, 3]) {
          run(optimizer, parameters, 0, applied);
          const before = [await parameters.values(), await optimizer.stateDict()];
          target.write(flag, [1]);
          for (const bad of [Number.NaN, Infinity, 1]) {
            parameters.setGradients(noise(total, 9).fill(bad));
            optimizer.step({ foundInf: flag.buffer });
          }
          const after = [await parameters.values(), await optimizer.stateDict()];
          if (JSON.stringify(after) !== JSON.stringify(before))
            found.push(`${name} ${dtype} after ${applied} steps`);
        }
      }
    expect(found).toEqual([]);
  });

  // Those that compare norms of a whole parameter, or multiply matrices, are left out: an infinity is part of them.
  it("a masked parameter of −∞ without a gradient stays what it is, where nothing decays", async () => {
    const target = await make();
    const found: Record<string, number[]> = {};
    const names = ["Adadelta", "Adagrad", "Adam", "Adamax", "AdamW", "ASGD", "BertAdam", "NAdam"];
    for (const name of [...names, "RAdam", "RMSprop", "Rprop", "SGD"] as const) {
      const parameters = new Parameters(target, [1, -Infinity], "float32", { logits: [2] });
      const Optimizer = classes[name as keyof typeof classes] as typeof SGD;
      for (const options of name === "SGD" ? [{}, { momentum: 0.9 }] : [{}]) {
        const { flat } = parameters;
        const optimizer = new Optimizer(target, flat, { lr: 0.1, weightDecay: 0, ...options });
        for (let step = 0; step < 2; step++) {
          parameters.setGradients([0.5, 0]);
          optimizer.step();
        }
      }
      found[name] = (await parameters.values()).slice(1);
    }
    const expected = Object.keys(found).map((name) => [name, [-Infinity]]);
    expect(found).toEqual(Object.fromEntries(expected));
  });

  it("options that choose another rule are fixed once a group is there, but momentum may end", async () => {
    const target = await make();
    const { flat } = new Parameters(target, noise(total, 1));
    const sgd = new SGD(target, flat, { lr: 0.1, momentum: 0.9 });
    const options = sgd.paramGroups[0] as { momentum: number };
    options.momentum = 0;
    sgd.step();
    const plain = new SGD(target, flat, { lr: 0.1 });
    (plain.paramGroups[0] as { momentum: number }).momentum = 0.9;
    expect(() => plain.step()).toThrow(
      'an option of a group now chooses the rule "sgd momentum", but the group was added with "sgd"',
    );
    const adam = new AdamW(target, flat, { amsgrad: true });
    (adam.paramGroups[0] as { amsgrad: boolean }).amsgrad = false;
    expect(() => adam.step()).toThrow("make the optimizer with that option");
  });

  it("groups have options of their own, and a new rate holds from the next step", async () => {
    const target = await make();
    const [first, second] = [1, 2].map((seed) => new Parameters(target, noise(total, seed)));
    if (!first || !second) throw new Error("unreachable");
    const optimizer = new SGD(
      target,
      [{ params: first.flat }, { params: second.flat, lr: 0.5, weightDecay: 0.25 }],
      { lr: 0.125 },
    );
    const gradients = noise(total, 3);
    for (const parameters of [first, second]) parameters.setGradients(gradients);
    optimizer.step();
    const [group] = optimizer.paramGroups;
    if (group) group.lr = 1;
    optimizer.step();
    const want = (seed: number, rates: readonly number[], decay: number): number[] =>
      noise(total, seed).map((p, i) =>
        rates.reduce((v, lr) => v - lr * ((gradients[i] as number) + decay * v), p),
      );
    const error = (got: readonly number[], expected: readonly number[]): number =>
      Math.max(...expected.map((v, i) => Math.abs(v - (got[i] as number))));
    expect(error(await first.values(), want(1, [0.125, 1], 0))).toBeLessThan(1e-6);
    expect(error(await second.values(), want(2, [0.5, 0.5], 0.25))).toBeLessThan(1e-6);
  });

  it("a schedule without an end grows its table, and one may replace another", async () => {
    const target = await make();
    const parameters = new Parameters(target, noise(total, 1).fill(0));
    const rate: Schedule = (step) => (step >= 4096 ? 1 : 0);
    const optimizer = new SGD(target, parameters.flat, { lr: rate });
    parameters.setGradients(noise(total, 1).fill(-1));
    for (let step = 0; step < 4099; step++) optimizer.step();
    expect((await parameters.values())[0]).toBe(3);
    const [group] = optimizer.paramGroups;
    if (group) group.lr = (step) => step - 4090;
    optimizer.step();
    expect((await parameters.values())[0]).toBe(12);
  });

  it("steps only what has a gradient", async () => {
    const target = await make();
    const parameters = new Parameters(target, noise(total, 1));
    const present = new Set<number>();
    let zeroed = 0;
    const flat = {
      ...parameters.flat,
      hasGradient: (segment: number) => present.has(segment),
      zeroGrad: () => void zeroed++,
    };
    const optimizer = new AdamW(target, flat, { lr: 0.1 });
    parameters.setGradients(noise(total, 2));
    const changed = async (...segments: number[]): Promise<boolean[]> => {
      present.clear();
      for (const segment of segments) present.add(segment);
      const before = await parameters.values();
      optimizer.step();
      const after = await parameters.values();
      const moved = after.map((v, i) => v !== before[i]);
      return [moved.slice(0, 77), moved.slice(77, 88), moved.slice(88)].map((part) =>
        part.every(Boolean) ? true : part.some(Boolean) ? Number.NaN : false,
      ) as boolean[];
    };
    expect(await changed()).toEqual([false, false, false]);
    expect(await optimizer.appliedSteps()).toEqual([0]);
    expect(await changed(1)).toEqual([false, true, false]);
    expect(await changed(0, 2)).toEqual([true, false, true]);
    expect(await changed(0, 1, 2)).toEqual([true, true, true]);
    expect([...optimizer.gradients()].map(({ length }) => length)).toHaveLength(1);
    optimizer.zeroGrad();
    expect(zeroed).toBe(1);
  });

  it("keeps float32 masters of 16-bit values, or none where asked", async () => {
    const target = await make();
    const result: Record<string, number> = {};
    for (const dtype of ["float16", "bfloat16"] as const)
      for (const storage of ["master", "plain"] as const) {
        const parameters = new Parameters(target, noise(total, 1).fill(1), dtype);
        const optimizer = new SGD(target, parameters.flat, { lr: 2 ** -13, storage });
        parameters.setGradients(noise(total, 1).fill(-1));
        for (let step = 0; step < 256; step++) optimizer.step();
        const [value = 0] = await parameters.values();
        result[`${dtype} ${storage}`] = value;
      }
    // 256 updates of 2^-13 add up to 2^-5, but each alone is lost: a unit in the last place is 2^-10 or 2^-7.
    expect(result).toEqual({
      "float16 master": 1 + 2 ** -5,
      "float16 plain": 1,
      "bfloat16 master": 1 + 2 ** -5,
      "bfloat16 plain": 1,
    });
  });

  it("masters follow values that were written by somebody else only when told", async () => {
    const target = await make();
    const parameters = new Parameters(target, noise(total, 1), "float16");
    const optimizer = new SGD(target, parameters.flat, { lr: 1 });
    parameters.setGradients(noise(total, 1).fill(0));
    parameters.setValues(noise(total, 1).fill(0.5));
    optimizer.reloadMasters();
    optimizer.step();
    expect(new Set(await parameters.values())).toEqual(new Set([0.5]));
  });

  it("clips by the norm of all groups, without the scale", async () => {
    const target = await make();
    const [first, second] = [1, 2].map((seed) => new Parameters(target, noise(total, seed)));
    if (!first || !second) throw new Error("unreachable");
    const optimizer = new SGD(target, [{ params: first.flat }, { params: second.flat }]);
    const scale = scalar(target, 2);
    target.write(scale, [1024, 2 ** -10]);
    const gradients = noise(total, 3);
    const norm = Math.sqrt(2 * gradients.reduce((sum, g) => sum + g * g, 0));
    const largest = Math.max(...gradients.map(Math.abs));
    for (const { normType, want, factor } of [
      { normType: 2, want: norm, factor: 0.5 / (norm + 1e-6) },
      { normType: Infinity, want: largest, factor: 0.5 / (largest + 1e-6) },
    ]) {
      for (const p of [first, second]) p.setGradients(gradients.map((g) => g * 1024));
      const clipped = clipGradNorm(optimizer, 0.5, { normType, gradScale: scale.buffer });
      expect(Math.abs((await clipped.read()) / want - 1)).toBeLessThan(1e-6);
      const got = await second.gradients();
      const errors = got.map((g, i) => Math.abs(g - (gradients[i] as number) * 1024 * factor));
      expect(Math.max(...errors)).toBeLessThan(1e-3);
    }
    for (const p of [first, second]) p.setGradients(gradients);
    clipGradNorm(optimizer, 1e6);
    expect(await first.gradients()).toEqual(gradients);
  });

  it("a norm that is not finite is an error where asked", async () => {
    const target = await make();
    const parameters = new Parameters(target, noise(total, 1));
    const optimizer = new SGD(target, parameters.flat);
    parameters.setGradients(noise(total, 1).with(3, Number.NaN));
    expect(await clipGradNorm(optimizer, 1).read()).toBeNaN();
    const strict = clipGradNorm(optimizer, 1, { errorIfNonfinite: true });
    await expect(strict.read()).rejects.toBeInstanceOf(NonFiniteGradientError);
    expect(() => clipGradNorm(optimizer, 0)).toThrow("maxNorm is 0");
    expect(() => clipGradNorm(optimizer, 1, { normType: -1 })).toThrow("normType is -1");
  });

  it("zeroGrad sets gradients to zero", async () => {
    const target = await make();
    const parameters = new Parameters(target, noise(total, 1));
    const optimizer = new SGD(target, parameters.flat);
    parameters.setGradients(noise(total, 2));
    optimizer.zeroGrad();
    expect(new Set(await parameters.gradients())).toEqual(new Set([0]));
  });

  it("goes on from a saved state bit for bit", async () => {
    const target = await make();
    const found: string[] = [];
    for (const dtype of ["float32", "bfloat16"] as const)
      for (const name of ["AdamW", "SGD"] as const) {
        const lr = oneCycle({ maxLr: 0.1, totalSteps: 9 });
        const makeOptimizer = ({ flat }: Parameters) =>
          name === "AdamW"
            ? new AdamW(target, flat, { lr, amsgrad: true })
            : new SGD(target, flat, { lr, momentum: 0.9, dampening: 0.5 });
        const unbroken = new Parameters(target, noise(total, 1), dtype);
        const optimizer = makeOptimizer(unbroken);
        run(optimizer, unbroken, 0, 3);
        const saved = JSON.stringify(await optimizer.stateDict(), (_key, value) =>
          value instanceof Float32Array ? [...value] : value,
        );
        const resumed = new Parameters(target, await unbroken.values(), dtype);
        run(optimizer, unbroken, 3, 8);
        const other = makeOptimizer(resumed);
        other.loadStateDict(JSON.parse(saved));
        run(other, resumed, 3, 8);
        const states = [await optimizer.stateDict(), await other.stateDict()];
        if (JSON.stringify(await unbroken.values()) !== JSON.stringify(await resumed.values()))
          found.push(`${name} ${dtype}: values`);
        if (JSON.stringify(states[0]) !== JSON.stringify(states[1]))
          found.push(`${name} ${dtype}: state`);
      }
    expect(found).toEqual([]);
  });

  it("refuses the state of another optimizer, and stays as it was", async () => {
    const target = await make();
    const parameters = new Parameters(target, noise(total, 1));
    const optimizer = new AdamW(target, parameters.flat);
    run(optimizer, parameters, 0, 2);
    const good = await optimizer.stateDict();
    const [group] = good.groups;
    if (!group) throw new Error("unreachable");
    const { weight, ...rest } = group.state;
    const sgd = await new SGD(target, parameters.flat).stateDict();
    const changed = (state: typeof group.state, applied = 1) => ({
      ...good,
      groups: [{ ...group, state, applied }],
    });
    const bad = [
      [sgd, "the state is one of SGD, not of AdamW"],
      [{ ...good, groups: [] }, "the state has 0 parameter groups, but the optimizer 1"],
      [changed(rest), "no expAvg for weight"],
      [changed({ ...group.state, other: {} }), "the saved state has other"],
      [
        changed({ ...group.state, bias: { ...weight } }),
        "expAvg of bias has 77 elements, but the parameter is [11]",
      ],
      [changed(group.state, -1), "-1 applied steps"],
    ] as const;
    for (const [state, message] of bad) {
      expect(() => optimizer.loadStateDict(state)).toThrow(OptimizerStateError);
      expect(() => optimizer.loadStateDict(state)).toThrow(message);
    }
    expect(await optimizer.stateDict()).toEqual(good);
  });

  it("refuses an eps that vanishes, in every optimizer that has one", async () => {
    const target = await make();
    const { flat } = new Parameters(target, noise(total, 1));
    const matrix = flatTensors(target, { weight: [2, 3] });
    const found: string[] = [];
    for (const [name, Class] of Object.entries(classes)) {
      if (name === "SGD" || name === "Lion") continue;
      const params = name === "Muon" ? matrix : flat;
      const isPair = name === "Adafactor";
      for (const eps of [0, 1e-40, -1, Number.NaN]) {
        const make = () =>
          new (Class as typeof AdamW)(target, params, { eps: (isPair ? [eps, 1] : eps) as number });
        try {
          make();
          found.push(`${name} takes ${eps}`);
        } catch (error) {
          if (!(error instanceof RangeError && error.message.includes("eps")))
            found.push(`${name}, ${eps}: ${error}`);
        }
      }
    }
    expect(found).toEqual([]);
    expect(() => new LARC(new SGD(target, flat), { eps: 0 })).toThrow("eps is 0, which vanishes");
    expect(() => new LARC(new LAMB(target, flat))).toThrow("LARC cannot wrap lamb");
    expect(() => new Muon(target, flat)).toThrow("Muon is for matrices, but bias is [11]");
  });

  it("names options that are out of range", async () => {
    const target = await make();
    const { flat } = new Parameters(target, noise(total, 1));
    const half = flatTensors(target, { weight: [3] }, { dtype: "float16" });
    const misspelt: object = { weight_decay: 0 };
    const wrong = [
      [() => new AdamW(target, flat, { lr: -1 }), "lr is -1"],
      [() => new AdamW(target, flat, { betas: [0.9, 1] }), "betas[1] is 1"],
      // @ts-expect-error one of two
      [() => new AdamW(target, flat, { betas: [0.9] }), "betas is [0.9]: give two numbers"],
      // @ts-expect-error three of two
      [() => new AdamW(target, flat, { betas: [0.9, 0.99, 0.999] }), "betas is [0.9, 0.99, 0.999]"],
      [
        () => new AdamW(target, []),
        "AdamW takes at least one group of parameters, and the list is",
      ],
      // @ts-expect-error parameters themselves, as torch takes them
      [() => new AdamW(target, [{ shape: [3] }]), "AdamW takes flat parameters, or groups of them"],
      // @ts-expect-error the runtime in its target's place
      [() => new AdamW({ target }, flat), "AdamW takes a target first: pass runtime.target"],
      // @ts-expect-error what a command line gives is text
      [() => new AdamW(target, flat, { lr: "0.1" }), 'lr is "0.1": it must be a number'],
      [() => new AdamW(target, flat, misspelt), 'AdamW has no option "weight_decay": it has lr, '],
      [
        () => new AdamW(target, [{ params: flat, ...misspelt }]),
        'a group of AdamW has no option "weight_decay"',
      ],
      [() => new AdamW(target, flat, { eps: 0 }), "eps is 0, which vanishes"],
      [() => new AdamW(target, flat, { eps: 1e-40 }), "vanishes in float32"],
      [() => new AdamW(target, flat, { weightDecay: Number.NaN }), "weightDecay is NaN"],
      [() => new AdamW(target, flat, { lr: () => Number.NaN }), "learning rate of NaN for step 0"],
      [() => new AdamW(target, half, { storage: "float32" }), "is stored as float16"],
      [() => new SGD(target, flat, { nesterov: true }), "nesterov needs a momentum"],
      [() => new RMSprop(target, flat, { alpha: 2 }), "alpha is 2"],
      [() => new Adagrad(target, flat, { lrDecay: -1 }), "lrDecay is -1"],
      [() => new Adafactor(target, flat, { beta2Decay: 1 }), "beta2Decay is 1"],
      [() => new NovoGrad(target, flat, { normType: 1 as 2 }), "normType is 1"],
      [() => new BertAdam(target, flat, { warmup: 2 }), "warmup is 2"],
      [() => new BertAdam(target, flat, { tTotal: 0.5 }), "tTotal is 0.5"],
      [() => new LAMB(target, flat, { maxGradNorm: 0 }), "maxGradNorm is 0"],
      [() => new AdamW(target, flat, { clipGradNorm: -1 }), "clipGradNorm is -1"],
      // @ts-expect-error what a command line gives is text
      [() => new AdamW(target, flat, { clipGradNorm: "1" }), 'clipGradNorm is "1"'],
      [() => new SGD(target, [{ params: flat }, { params: flat }]), "weight is in two groups"],
    ] as const;
    for (const [make, message] of wrong) expect(make).toThrow(message);
    const optimizer = new SGD(target, flat);
    const [group] = optimizer.paramGroups;
    if (group) group.lr = Number.NaN;
    expect(() => optimizer.step()).toThrow("lr is NaN");
    if (group) group.lr = "0.5" as never;
    expect(() => optimizer.step()).toThrow('lr is "0.5": it must be a number of at least 0');
    if (group) Object.assign(group, { lr: 1, maximize: "no" });
    expect(() => optimizer.step()).toThrow('maximize is "no": it must be true or false');
    // Rows that are made ahead do not count: the schedule is asked for two steps.
    const ending = new SGD(target, flat, { lr: (step) => 1 - step });
    ending.step();
    ending.step();
    expect(() => ending.step()).toThrow("the schedule gives a learning rate of -1 for step 2: it");
  });
});
