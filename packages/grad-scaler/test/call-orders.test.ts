import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type AccumulationWindow,
  accumulationWindow,
  float32Primitives,
  GradScaler,
  type ScaleCollapseError,
  type ScalerMistake,
  ScalerStateError,
  type StepOutcome,
  scaledValue,
} from "../src/index.js";
import { Sgd } from "./sgd.js";

type Action =
  | { do: "backward"; optimizer: number; gradient: number; loss: number }
  | { do: "unscale" | "clip" | "step" | "zeroGrad"; optimizer: number }
  | { do: "windowScale"; gradient: number }
  | { do: "windowStep" | "windowReset" | "update" | "save" };

const FLOOR = 0.5;
const INTERVAL = 2;
const MICRO_STEPS = 2;

const f32 = Math.fround;

/** torch's scaler over one-parameter SGD optimizers, written down a second time, with the host knowing everything. */
class Model {
  scale = 4;
  tracker = 0;
  step = 0;
  scaled = false;
  steppedBefore: ReadonlySet<number> | undefined;
  readonly stages = new Map<number, "unscaled" | "stepped">();
  readonly found = new Map<number, boolean>();
  readonly gradients: (number | undefined)[] = [undefined, undefined];
  readonly parameters: number[] = [0, 0];
  readonly outcomes: StepOutcome[] = [];
  readonly collapses: [step: number, pass: string][] = [];
  /** Micro-steps of the window of optimizer 0, where it is open. */
  windowSeen = 0;
  #badLoss = false;
  #squares = 0;
  #isAllZero = true;
  #overflowing: "forward" | "backward" | undefined;
  #collapsed = false;

  run(action: Action): ScalerMistake | "ok" {
    if (this.windowSeen > 0 && !action.do.startsWith("window") && action.do !== "zeroGrad") {
      return action.do === "save" ? this.#save() : "open-window";
    }
    switch (action.do) {
      case "backward":
        return this.#backward(action.optimizer, action.gradient, action.loss);
      case "zeroGrad":
        this.gradients[action.optimizer] = undefined;
        return "ok";
      case "unscale": {
        const stage = this.stages.get(action.optimizer);
        if (stage === "unscaled") return "double-unscale";
        if (stage === "stepped") return "unscale-after-step";
        return this.#check(action.optimizer, true);
      }
      case "clip": {
        const stage = this.stages.get(action.optimizer);
        if (stage !== "unscaled") return stage ? "clip-after-step" : "clip-before-unscale";
        this.#clip(action.optimizer);
        return "ok";
      }
      case "step":
        return this.#step(action.optimizer);
      case "update":
        return this.#update();
      case "save":
        return this.#save();
      case "windowScale": {
        if (this.windowSeen === MICRO_STEPS) return "window-overfull";
        if (this.stages.has(0)) return "loss-after-unscale";
        this.windowSeen += 1;
        return this.#backward(0, action.gradient, f32(1 / MICRO_STEPS));
      }
      case "windowStep":
        return this.#windowStep();
      case "windowReset":
        return this.#windowReset();
    }
  }

  #backward(optimizer: number, gradient: number, loss: number): "ok" {
    this.scaled = true;
    if (!Number.isFinite(loss)) this.#badLoss = true;
    const scaled = f32(gradient * f32(loss * this.scale));
    this.gradients[optimizer] = f32((this.gradients[optimizer] ?? 0) + scaled);
    return "ok";
  }

  #check(optimizer: number, inPlace: boolean): ScalerMistake | "ok" {
    const gradient = this.gradients[optimizer];
    if (gradient === undefined) return "no-gradients";
    if (!this.scaled) {
      const isOld = this.steppedBefore && !this.steppedBefore.has(optimizer);
      return isOld ? "scale-changed" : "not-scaled";
    }
    this.found.set(optimizer, !Number.isFinite(gradient));
    this.stages.set(optimizer, "unscaled");
    this.#squares += (gradient / this.scale) ** 2;
    this.#isAllZero &&= gradient === 0;
    if (inPlace) this.gradients[optimizer] = f32(gradient / this.scale);
    return "ok";
  }

  #clip(optimizer: number): void {
    const gradient = this.gradients[optimizer];
    // It may have been cleared since it was unscaled.
    if (gradient !== undefined) this.gradients[optimizer] = Math.min(gradient, 3);
  }

  #step(optimizer: number): ScalerMistake | "ok" {
    if (this.stages.get(optimizer) === "stepped") return "double-step";
    // The second optimizer unscales inside its own step.
    const fuses = optimizer === 1 && !this.stages.has(optimizer);
    if (!this.stages.has(optimizer)) {
      const mistake = this.#check(optimizer, !fuses);
      if (mistake !== "ok") return mistake;
    }
    this.stages.set(optimizer, "stepped");
    if (this.found.get(optimizer)) return "ok";
    const gradient = this.gradients[optimizer] ?? 0;
    const update = fuses ? f32(gradient / this.scale) : gradient;
    this.parameters[optimizer] = f32((this.parameters[optimizer] as number) - update);
    return "ok";
  }

  #windowStep(): ScalerMistake | "ok" {
    if (this.windowSeen < MICRO_STEPS) return "window-not-full";
    // A window checks gradients that it has made itself, unless they were cleared in between.
    const mistake = this.#check(0, true);
    if (mistake !== "ok") return mistake;
    this.#clip(0);
    this.#step(0);
    this.#update();
    this.gradients[0] = undefined;
    return "ok";
  }

  #windowReset(): "ok" {
    if (this.windowSeen === 0) return "ok";
    this.#clear();
    this.gradients[0] = undefined;
    return "ok";
  }

  #save(): ScalerMistake | "ok" {
    return this.stages.size > 0 ? "mid-step" : "ok";
  }

  #update(): ScalerMistake | "ok" {
    if (this.stages.size === 0) return "no-checks";
    const foundInf = [...this.found.values()].includes(true);
    const scaleBefore = this.scale;
    const pass = this.#badLoss ? "forward" : "backward";
    if (foundInf) {
      this.#overflowing ??= pass;
      if (this.scale === FLOOR && !this.#collapsed) {
        this.collapses.push([this.step + 1, this.#overflowing]);
        this.#collapsed = true;
      }
      this.scale = Math.max(this.scale / 2, FLOOR);
      this.tracker = 0;
    } else {
      this.#overflowing = undefined;
      this.#collapsed = false;
      this.tracker += 1;
      if (this.tracker === INTERVAL) {
        this.scale *= 2;
        this.tracker = 0;
      }
    }
    this.step += 1;
    const indices = [...this.stages.keys()];
    const optimizers = indices.map((each) =>
      this.stages.get(each) === "stepped" && !this.found.get(each) ? "applied" : "skipped",
    );
    const overflowed = indices.flatMap((each, i) => (this.found.get(each) ? i : []));
    this.outcomes.push({
      step: this.step,
      status: optimizers.includes("skipped") ? "skipped" : "applied",
      optimizers,
      foundInf,
      ...(foundInf
        ? { cause: { pass, optimizers: overflowed } }
        : { gradientNorm: expect.closeTo(Math.sqrt(this.#squares), 3) as number }),
      ...(this.#isAllZero && { zeroGradients: {} }),
      scaleBefore,
      scaleAfter: this.scale,
      lostBefore: 0,
    });
    const stepped = [...this.stages].filter(([, stage]) => stage === "stepped");
    this.steppedBefore = this.scaled ? new Set(stepped.map(([optimizer]) => optimizer)) : undefined;
    this.#clear();
    return "ok";
  }

  #clear(): void {
    this.scaled = false;
    this.windowSeen = 0;
    this.#badLoss = false;
    this.#squares = 0;
    this.#isAllZero = true;
    this.stages.clear();
    this.found.clear();
  }
}

async function attempt(call: () => Promise<void>): Promise<ScalerMistake | "ok"> {
  try {
    await call();
    return "ok";
  } catch (error) {
    if (error instanceof ScalerStateError) return (error as ScalerStateError).mistake;
    throw error;
  }
}

/** The scaler under test, and what the actions are performed on. */
class Subject {
  readonly scaler: GradScaler<Float32Array> = new GradScaler(float32Primitives, {
    gradientNorm: true,
    initScale: 4,
    growthInterval: INTERVAL,
    minScale: FLOOR,
    outcomeSchedule: false,
  });
  readonly optimizers: readonly [Sgd, Sgd] = [new Sgd([0]), new Sgd([0], true)];
  readonly #window: AccumulationWindow<Float32Array, Float32Array, Sgd> = accumulationWindow(
    this.scaler,
    this.optimizers[0],
    {
      microSteps: MICRO_STEPS,
    },
  );

  async perform(action: Action): Promise<void> {
    const { scaler, optimizers } = this;
    const clip = ({ gradient }: Sgd): void => gradient?.set([Math.min(gradient[0] as number, 3)]);
    switch (action.do) {
      case "update":
        return scaler.update();
      case "save":
        return void (await scaler.stateDict());
      case "windowStep":
        return this.#window.step({ clip });
      case "windowReset":
        return this.#window.reset();
      case "windowScale": {
        const scaled = this.#window.scale(Float32Array.of(1));
        return optimizers[0].backward([action.gradient], scaledValue(scaled));
      }
      case "backward": {
        const scaled = scaler.scale(Float32Array.of(action.loss));
        return optimizers[action.optimizer]?.backward([action.gradient], scaledValue(scaled));
      }
      default: {
        const optimizer = optimizers[action.optimizer] as Sgd;
        if (action.do === "zeroGrad") optimizer.zeroGrad();
        else if (action.do === "clip") scaler.clip(optimizer, clip);
        else scaler[action.do](optimizer);
      }
    }
  }
}

async function drainAll(
  scaler: GradScaler<Float32Array>,
): Promise<{ outcomes: StepOutcome[]; collapses: [number, string][] }> {
  const outcomes: StepOutcome[] = [];
  const collapses: [number, string][] = [];
  for (;;) {
    try {
      outcomes.push(...(await scaler.drain()));
      return { outcomes, collapses };
    } catch (error) {
      const collapse = error as ScaleCollapseError;
      outcomes.push(...collapse.outcomes);
      collapses.push([collapse.step, collapse.pass]);
    }
  }
}

const optimizer = fc.integer({ min: 0, max: 1 });
const gradient = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: -9, max: 9 }) },
  { weight: 1, arbitrary: fc.constantFrom(Number.POSITIVE_INFINITY, Number.NaN) },
);
const loss = fc.constantFrom(1, 1, 1, 1, 1, Number.NaN);
const anything: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ do: fc.constant("backward" as const), optimizer, gradient, loss }),
  fc.record({ do: fc.constantFrom("unscale", "clip", "step", "zeroGrad"), optimizer }),
  fc.record({ do: fc.constant("windowScale" as const), gradient }),
  fc.record({ do: fc.constantFrom("update", "save", "windowStep", "windowReset") }),
);
/** What comes too late, or too often, after a step and before its update. */
const lateCalls = (optimizer: number): Action[] => [
  { do: "save" },
  { do: "unscale", optimizer },
  { do: "clip", optimizer },
  { do: "step", optimizer },
  { do: "windowScale", gradient: 1 },
];
/** A correct step, so that traces get far; arbitrary calls in between make the mistakes. */
const plainStep: fc.Arbitrary<Action[]> = fc
  .tuple(optimizer, gradient, loss, fc.boolean(), fc.nat({ max: 9 }))
  .map(([optimizer, gradient, loss, unscale, other]) => [
    { do: "zeroGrad", optimizer },
    { do: "backward", optimizer, gradient, loss },
    ...(unscale ? [{ do: "unscale", optimizer } as const] : []),
    ...(unscale ? [{ do: "clip", optimizer } as const] : []),
    { do: "step", optimizer },
    ...lateCalls(optimizer).slice(other, other + 1),
    { do: "update" },
  ]);
const windowStep: fc.Arbitrary<Action[]> = fc
  .tuple(gradient, gradient)
  .map(([first, second]) => [
    { do: "zeroGrad", optimizer: 0 },
    { do: "windowScale", gradient: first },
    { do: "windowScale", gradient: second },
    { do: "windowStep" },
  ]);
const program = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: plainStep },
      { weight: 1, arbitrary: windowStep },
      { weight: 2, arbitrary: anything.map((action) => [action]) },
    ),
    { maxLength: 30 },
  )
  .map((parts) => parts.flat());

/** Performs a program on both; returns every result, and what became of the steps. */
async function compare(actions: readonly Action[]): Promise<string[]> {
  const model = new Model();
  const subject = new Subject();
  const { scaler, optimizers } = subject;
  const expected = actions.map((action) => model.run(action));
  const found: (ScalerMistake | "ok")[] = [];
  for (const action of actions) found.push(await attempt(() => subject.perform(action)));
  expect(found).toEqual(expected);
  expect(optimizers.map(({ parameters }) => parameters[0])).toEqual(model.parameters);
  expect(optimizers.map((each) => each.gradient?.[0])).toEqual(model.gradients);
  expect(await scaler.getScale()).toBe(model.scale);
  const { outcomes, collapses } = await drainAll(scaler);
  expect(outcomes).toEqual(model.outcomes);
  expect(collapses).toEqual(model.collapses);
  return [
    ...found,
    ...outcomes.map(({ status, cause }) => (cause ? cause.pass : status)),
    ...collapses.map(([, pass]) => `collapse in the ${pass} pass`),
  ];
}

test("every order of calls gives torch's errors, updates, scales and outcomes", () =>
  fc.assert(
    fc.asyncProperty(program, async (actions) => void (await compare(actions))),
    { numRuns: 1500 },
  ));

const backward = (gradient = 1, loss = 1): Action => ({
  do: "backward",
  ...{ optimizer: 0, gradient, loss },
});
const on = (action: "unscale" | "clip" | "step" | "zeroGrad", optimizer = 0): Action => ({
  do: action,
  optimizer,
});
const update: Action = { do: "update" };
const windowScale: Action = { do: "windowScale", gradient: 1 };
const windowStepped: Action = { do: "windowStep" };
const skipped = (gradient: number, loss = 1): Action[] => [
  ...[on("zeroGrad"), backward(gradient, loss), on("step"), update],
];
/** As many as take the scale from 4 to its floor, and one more. */
const toTheFloor = (gradient: number, loss: number): Action[] =>
  Array.from({ length: 4 }, () => skipped(gradient, loss)).flat();

/** A program for each mistake, and for each end of a step. */
const programs: Readonly<Record<string, readonly Action[]>> = {
  "double-unscale": [backward(), on("unscale"), on("unscale")],
  "unscale-after-step": [backward(), on("step"), on("unscale")],
  "double-step": [backward(), on("step"), on("step")],
  "no-checks": [backward(), update],
  "no-gradients": [on("step")],
  "scale-changed": [
    ...[backward(), { ...backward(), optimizer: 1 } as Action],
    ...[on("step"), update, on("step", 1)],
  ],
  "not-scaled": [backward(), on("step"), update, on("step")],
  "clip-before-unscale": [backward(), on("clip")],
  "clip-after-step": [backward(), on("step"), on("clip")],
  "mid-step": [backward(), on("step"), { do: "save" }],
  "loss-after-unscale": [backward(), on("unscale"), windowScale],
  "open-window": [windowScale, on("step")],
  "window-not-full": [windowScale, windowStepped],
  "window-overfull": [windowScale, windowScale, windowScale],
  applied: [windowScale, windowScale, windowStepped],
  forward: skipped(1, Number.NaN),
  backward: skipped(Number.POSITIVE_INFINITY),
  "collapse in the forward pass": toTheFloor(1, Number.NaN),
  "collapse in the backward pass": toTheFloor(Number.POSITIVE_INFINITY, 1),
};

test.each(Object.entries(programs))("%s", async (what, actions) => {
  expect(await compare(actions)).toContain(what);
});
