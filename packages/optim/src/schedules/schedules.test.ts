import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import {
  chained,
  constant,
  cosine,
  cosineRestarts,
  cyclic,
  exponential,
  imagenet,
  linear,
  linearWarmup,
  multiStep,
  oneCycle,
  polynomial,
  ReduceOnPlateau,
  type Schedule,
  sequential,
  stepDecay,
  warmupConstant,
  warmupCosine,
  warmupLinear,
} from "../index.js";

/** What torch's schedulers and the published formulas give; see schedules.py beside it. */
const golden = JSON.parse(
  readFileSync(new URL("../../test/golden/schedules.json", import.meta.url), "utf8"),
) as Record<string, readonly number[]>;

const rates = (schedule: Schedule, steps: number): number[] =>
  Array.from({ length: steps }, (_, step) => schedule(step));

/** torch/optim/lr_scheduler.py, OneCycleLR.get_lr with its phases, transcribed. */
function torchOneCycle(maxLr: number, totalSteps: number, pctStart: number, divFactor: number) {
  const initialLr = maxLr / divFactor;
  const phases = [
    { endStep: pctStart * totalSteps - 1, startLr: initialLr, endLr: maxLr },
    { endStep: totalSteps - 1, startLr: maxLr, endLr: initialLr / 1e4 },
  ];
  return Array.from({ length: totalSteps }, (_, step) => {
    let startStep = 0;
    for (const [i, { endStep, startLr, endLr }] of phases.entries()) {
      if (step <= endStep || i === phases.length - 1) {
        const cosOut = Math.cos((Math.PI * (step - startStep)) / (endStep - startStep)) + 1;
        return endLr + ((startLr - endLr) / 2) * cosOut;
      }
      startStep = endStep;
    }
    throw new Error("unreachable");
  });
}

const relativeErrors = (got: readonly number[], want: readonly number[]): number =>
  Math.max(...want.map((value, i) => Math.abs((got[i] as number) - value) / Math.abs(value || 1)));

describe("oneCycle", () => {
  it("gives what torch prints", () => {
    const printed = [
      0.0003999999999999993, 0.0052, 0.01, 0.009504846320134737, 0.008117456539497631,
      0.0061126202193628925, 0.003887419780637108, 0.00188258346050237, 0.0004951936798652628, 4e-8,
    ];
    expect(
      relativeErrors(rates(oneCycle({ maxLr: 0.01, totalSteps: 10 }), 10), printed),
    ).toBeLessThan(1e-12);
  });

  it("follows torch's phases for any length and division", () => {
    let worst = 0;
    for (const totalSteps of [2, 3, 7, 100, 469, 1407])
      for (const pctStart of [0.05, 0.3, 0.5, 0.9])
        for (const divFactor of [10, 25]) {
          const schedule = oneCycle({ maxLr: 0.3, totalSteps, pctStart, divFactor });
          // torch divides by zero where the rise would have no length.
          if (pctStart * totalSteps === 1) continue;
          const want = torchOneCycle(0.3, totalSteps, pctStart, divFactor);
          worst = Math.max(worst, relativeErrors(rates(schedule, totalSteps), want));
        }
    expect(worst).toBeLessThan(1e-12);
  });

  it("stays at its end, and refuses what is no schedule", () => {
    const schedule = oneCycle({ maxLr: 1, totalSteps: 5 });
    expect(schedule(1000)).toBe(schedule(4));
    expect(schedule.totalSteps).toBe(5);
    expect(() => oneCycle({ maxLr: 1, totalSteps: 0 })).toThrow("totalSteps is 0");
    expect(() => oneCycle({ maxLr: 1, totalSteps: 5, pctStart: 2 })).toThrow("pctStart is 2");
  });
});

const lr = 0.3;

test.each<[string, Schedule]>([
  ["linear", linear({ lr, totalSteps: 7, startFactor: 0.5, endFactor: 0.125 })],
  ["step", stepDecay({ lr, stepSize: 3, gamma: 0.5 })],
  ["multiStep", multiStep({ lr, milestones: [2, 5, 9] })],
  ["exponential", exponential({ lr, gamma: 0.9 })],
  ["polynomial", polynomial({ lr, totalSteps: 8, power: 2 })],
  ["cosine", cosine({ lr, totalSteps: 10, minLr: 0.01 })],
  ["cosineRestarts", cosineRestarts({ lr, firstSteps: 3, multiplier: 2, minLr: 0.01 })],
  ["cosineRestartsEqual", cosineRestarts({ lr, firstSteps: 4 })],
  ["triangular", cyclic({ baseLr: 0.1, maxLr: 0.9, stepsUp: 3, stepsDown: 2 })],
  ["triangular2", cyclic({ baseLr: 0.1, maxLr: 0.9, stepsUp: 2, mode: "triangular2" })],
  [
    "expRange",
    cyclic({ baseLr: 0.1, maxLr: 0.9, stepsUp: 2, stepsDown: 4, mode: "expRange", gamma: 0.9 }),
  ],
  [
    "sequential",
    sequential(
      [linearWarmup({ lr, warmupSteps: 4, startFactor: 0.25 }), exponential({ lr, gamma: 0.8 })],
      [4],
    ),
  ],
  [
    "chained",
    chained(
      exponential({ lr, gamma: 0.8 }),
      linearWarmup({ lr: 1, warmupSteps: 4, startFactor: 0.25 }),
    ),
  ],
  ["warmupLinear", warmupLinear({ lr: 1, totalSteps: 20, warmup: 0.25 })],
  ["warmupConstant", warmupConstant({ lr: 1, totalSteps: 20, warmup: 0.25 })],
  ["warmupCosine", warmupCosine({ lr: 1, totalSteps: 20, warmup: 0.25 })],
  ["imagenet", imagenet({ lr: 0.4, stepsPerEpoch: 2 })],
])("%s is what its source gives", (name, schedule) => {
  const want = golden[name] as readonly number[];
  expect(want.length).toBeGreaterThan(10);
  expect(relativeErrors(rates(schedule, want.length), want)).toBeLessThan(1e-12);
});

describe("ReduceOnPlateau", () => {
  const metrics = (golden.bumpy as readonly (number | "inf")[]).map((metric) =>
    metric === "inf" ? Number.POSITIVE_INFINITY : metric,
  );

  test.each([
    ["plateauMin", { patience: 1, factor: 0.5, threshold: 0.05, cooldown: 1 }],
    ["plateauMax", { mode: "max", patience: 2, thresholdMode: "absolute", minLr: 1e-3 }],
  ] as const)("%s follows torch, and resumes in the middle", (name, options) => {
    const group = { lr: 1 };
    let plateau = new ReduceOnPlateau([group], options);
    const seen = metrics.map((metric, i) => {
      if (i === 7) {
        const state = JSON.parse(JSON.stringify(plateau.stateDict()));
        plateau = new ReduceOnPlateau([group], options);
        plateau.loadStateDict(state);
      }
      plateau.step(metric);
      return group.lr;
    });
    expect(relativeErrors(seen, golden[name] as readonly number[])).toBeLessThan(1e-12);
  });

  test("a NaN is no improvement, and what does not fit is refused", () => {
    const group = { lr: 1 };
    const plateau = new ReduceOnPlateau([group], { patience: 0 });
    // Before the first metric, too, JSON holds the state.
    plateau.loadStateDict(JSON.parse(JSON.stringify(plateau.stateDict())));
    plateau.step(1);
    expect([plateau.step(Number.NaN), group.lr]).toEqual([true, 0.1]);
    expect(() => new ReduceOnPlateau([{ lr: constant(1) }])).toThrow(
      "a group's rate is a schedule",
    );
    expect(() => new ReduceOnPlateau([group], { factor: 1 })).toThrow("factor is 1");
    expect(() => new ReduceOnPlateau([group], { mode: "best" as "min" })).toThrow('mode is "best"');
    expect(() => plateau.loadStateDict({} as never)).toThrow("no number best");
  });
});

test("where a schedule says that it has ended, its rate stays", () => {
  const steps = fc.integer({ min: 1, max: 400 });
  fc.assert(
    fc.property(steps, steps, fc.double({ min: 1e-6, max: 1, noNaN: true }), (total, at, rate) => {
      const ended: readonly Schedule[] = [
        constant(rate),
        linear({ lr: rate, totalSteps: total }),
        polynomial({ lr: rate, totalSteps: total, power: 3 }),
        cosine({ lr: rate, totalSteps: total }),
        linearWarmup({ lr: rate, warmupSteps: total }),
        multiStep({ lr: rate, milestones: [total] }),
        oneCycle({ maxLr: rate, totalSteps: total }),
        warmupLinear({ lr: rate, totalSteps: total }),
        warmupCosine({ lr: rate, totalSteps: total }),
        imagenet({ lr: rate, stepsPerEpoch: total }),
        sequential([constant(rate), linear({ lr: rate, totalSteps: total })], [at]),
        chained(constant(rate), linearWarmup({ lr: 1, warmupSteps: total })),
      ];
      for (const schedule of ended) {
        const last = schedule((schedule.totalSteps as number) - 1);
        if (schedule((schedule.totalSteps as number) + at) !== last || !(last >= 0)) return false;
      }
      return true;
    }),
  );
});

test("what is no schedule is refused by the option's name", () => {
  const refused: readonly [() => unknown, string][] = [
    [() => linear({ lr, totalSteps: 0 }), "totalSteps is 0"],
    [() => stepDecay({ lr, stepSize: 1.5 }), "stepSize is 1.5"],
    [() => multiStep({ lr, milestones: [3, 3] }), "milestones[1] is 3"],
    [() => cosineRestarts({ lr, firstSteps: 2, multiplier: 0.5 }), "multiplier is 0.5"],
    [() => cyclic({ baseLr: 0, maxLr: 1, mode: "square" as "triangular" }), 'mode is "square"'],
    [() => sequential([constant(1)], [4]), "1 schedules need 0 milestones, not 1"],
    [() => warmupLinear({ lr, totalSteps: 10, warmup: 2 }), "warmup is 2"],
    [() => imagenet({ lr, stepsPerEpoch: 0 }), "stepsPerEpoch is 0"],
    [() => cosine({ totalSteps: 10 } as never), "lr is undefined"],
    [() => exponential(0.1 as never), "exponential takes options in an object, not 0.1"],
  ];
  for (const [make, message] of refused) expect(make).toThrow(message);
});

test("misspelt options are refused, of every schedule", () => {
  const makers = { cosine, cosineRestarts, cyclic, exponential, imagenet, linear, linearWarmup };
  const others = { multiStep, oneCycle, polynomial, stepDecay };
  const warm = { warmupConstant, warmupCosine, warmupLinear };
  for (const [name, make] of Object.entries({ ...makers, ...others, ...warm }))
    expect(() => (make as (options: object) => Schedule)({ warmUpSteps: 3 }), name).toThrow(
      `${name} has no option "warmUpSteps": it has `,
    );
  expect(() => new ReduceOnPlateau([{ lr }], { min_lr: 0.5 } as never)).toThrow(
    'ReduceOnPlateau has no option "min_lr": it has mode, factor, patience',
  );
});

describe("other schedules", () => {
  it("constant", () => expect(rates(constant(0.5), 3)).toEqual([0.5, 0.5, 0.5]));

  it("linearWarmup rises to its rate and stays", () => {
    const schedule = linearWarmup({ lr: 1, warmupSteps: 4, startFactor: 0.2 });
    const want = [0.2, 0.4, 0.6, 0.8, 1, 1, 1];
    expect(relativeErrors(rates(schedule, 7), want)).toBeLessThan(1e-15);
  });

  it("cosine falls to its minimum, after a warm-up if asked", () => {
    const plain = [1, 0.8535533905932737, 0.5, 0.14644660940672624].map((x) => 0.1 + 0.9 * x);
    const schedule = cosine({ lr: 1, totalSteps: 4, minLr: 0.1 });
    expect(relativeErrors(rates(schedule, 6), [...plain, 0.1, 0.1])).toBeLessThan(1e-15);
    const warm = cosine({ lr: 1, totalSteps: 6, minLr: 0.1, warmupSteps: 2 });
    expect(relativeErrors(rates(warm, 7), [0.5, 1, ...plain, 0.1])).toBeLessThan(1e-15);
    expect(() => cosine({ lr: 1, totalSteps: 4, warmupSteps: 4 })).toThrow("warmupSteps is 4");
  });
});

describe("at the edges of their options", () => {
  const lr = 0.5;
  const edges: Readonly<Record<string, readonly Schedule[]>> = {
    constant: [constant(0)],
    linear: [linear({ lr, totalSteps: 1 }), linear({ lr, totalSteps: 2, startFactor: 0.1 })],
    linearWarmup: [linearWarmup({ lr, warmupSteps: 1, startFactor: 0 })],
    stepDecay: [stepDecay({ lr, stepSize: 1, gamma: 0 }), stepDecay({ lr, stepSize: 1, gamma: 1 })],
    multiStep: [multiStep({ lr, milestones: [] }), multiStep({ lr, milestones: [1], gamma: 0 })],
    exponential: [exponential({ lr, gamma: 0 }), exponential({ lr, gamma: 1 })],
    polynomial: [0, 1, 9].map((power) => polynomial({ lr, totalSteps: 1, power })),
    cosine: [
      cosine({ lr, totalSteps: 1 }),
      cosine({ lr, totalSteps: 2, warmupSteps: 1, minLr: 1 }),
    ],
    cosineRestarts: [1, 3].map((multiplier) => cosineRestarts({ lr, firstSteps: 1, multiplier })),
    oneCycle: [0, 0.5, 1].flatMap((pctStart) =>
      [1, 2, 5].map((totalSteps) => oneCycle({ maxLr: lr, totalSteps, pctStart })),
    ),
    cyclic: (["triangular", "triangular2", "expRange"] as const).map((mode) =>
      cyclic({ baseLr: 0, maxLr: lr, stepsUp: 1, stepsDown: 1, mode, gamma: 0 }),
    ),
    imagenet: [imagenet({ lr, stepsPerEpoch: 1, warmupEpochs: 0, milestones: [] })],
    ...Object.fromEntries(
      Object.entries({ warmupLinear, warmupConstant, warmupCosine }).map(([name, make]) => [
        name,
        [0, 0.5, 1].flatMap((warmup) =>
          [1, 2, 5].map((totalSteps) => make({ lr, totalSteps, warmup })),
        ),
      ]),
    ),
    sequential: [sequential([constant(lr)], []), sequential([constant(lr), constant(0)], [1])],
    chained: [chained(constant(lr))],
  };

  it.each(Object.entries(edges))("%s gives rates from 0 to its largest", (_, all) => {
    for (const each of all)
      for (const rate of rates(each, 8)) expect(rate >= 0 && rate <= 1).toBe(true);
  });

  it("a warm-up that takes all steps ends at the rate", () => {
    for (const make of [warmupLinear, warmupConstant, warmupCosine])
      expect(rates(make({ lr: 1, totalSteps: 4, warmup: 1 }), 6)).toEqual([
        0, 0.25, 0.5, 0.75, 1, 1,
      ]);
  });

  it("refuses options that give no rate", () => {
    const wrong: readonly (() => unknown)[] = [
      () => linear({ lr, totalSteps: 4, endFactor: Number.NaN }),
      () => linearWarmup({ lr, warmupSteps: 4, startFactor: -1 }),
      () => stepDecay({ lr, stepSize: 1, gamma: Number.NaN }),
      () => multiStep({ lr, milestones: [2], gamma: -1 }),
      () => exponential({ lr, gamma: -1 }),
      () => polynomial({ lr, totalSteps: 4, power: -1 }),
      () => cosine({ lr, totalSteps: 4, warmupSteps: 0.5 }),
      () => cosine({ lr, totalSteps: 4, minLr: Number.NaN }),
      () => cosineRestarts({ lr, firstSteps: 4, minLr: Number.NaN }),
      () => oneCycle({ maxLr: lr, totalSteps: 4, divFactor: 0 }),
      () => oneCycle({ maxLr: lr, totalSteps: 4, finalDivFactor: 0 }),
      () => cyclic({ baseLr: 0, maxLr: lr, mode: "expRange", gamma: -1 }),
      () => warmupCosine({ lr, totalSteps: 4, cycles: Number.NaN }),
      () => imagenet({ lr, stepsPerEpoch: 1, gamma: Number.NaN }),
      () => new ReduceOnPlateau([{ lr }], { patience: Number.NaN }),
    ];
    for (const make of wrong) expect(make).toThrow(/^\w+ is (NaN|-?[\d.]+): it must be/);
  });

  it("refuses what is no list, no schedule and no metric", () => {
    const plateau = new ReduceOnPlateau([{ lr }]);
    const wrong: readonly (readonly [make: () => unknown, text: string])[] = [
      [
        () => linear({ lr, totalSteps: 4, startFactor: 0 }),
        "startFactor is 0: it must be more than",
      ],
      [() => linear({ lr, totalSteps: 4, startFactor: 2 }), "startFactor is 2: it must be between"],
      [() => linear({ lr, totalSteps: 4, endFactor: 1.5 }), "endFactor is 1.5: it must be between"],
      [() => constant("0.1" as never), 'lr is "0.1": it must be a number'],
      [() => multiStep({ lr, milestones: "5" as never }), 'milestones is "5": it must be a list'],
      [
        () => imagenet({ lr, stepsPerEpoch: 1, milestones: 5 as never }),
        "milestones is 5: it must",
      ],
      [() => chained(...([] as never as [Schedule])), "chained takes at least one schedule"],
      [() => chained(1 as never), "chained takes schedules, not 1: pass constant(lr)"],
      [() => sequential([constant(lr), undefined as never], [1]), "sequential takes schedules"],
      [() => sequential(constant(lr) as never, []), "sequential takes at least one schedule"],
      [() => new ReduceOnPlateau([{ lr }], { factor: "0.1" as never }), 'factor is "0.1"'],
      [() => plateau.step(undefined as never), "metric is undefined; pass a number"],
      [() => plateau.step("0.5" as never), 'metric is "0.5"; pass a number'],
      [() => plateau.step(Promise.resolve(1) as never), "metric is a promise; pass a number"],
    ];
    for (const [make, text] of wrong) expect(make).toThrow(text);
    expect(plateau.step(Number.NaN)).toBe(false);
  });
});
