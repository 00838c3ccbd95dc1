import fc from "fast-check";
import { expect, test } from "vitest";
import {
  float32Primitives,
  GradScaler,
  type ScaleCollapseError,
  type ScalerMistake,
  ScalerStateError,
  type StepOutcome,
} from "../src/index.js";
import { Sgd } from "./sgd.js";

type Action =
  | { do: "backward"; optimizer: number; gradient: number }
  | { do: "unscale" | "step" | "zeroGrad"; optimizer: number }
  | { do: "update" };

const FLOOR = 0.5;
const INTERVAL = 2;

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
  readonly collapses: number[] = [];
  #overflowing = false;

  run(action: Action): ScalerMistake | "ok" {
    switch (action.do) {
      case "backward": {
        const { optimizer, gradient } = action;
        this.scaled = true;
        const sum = (this.gradients[optimizer] ?? 0) + Math.fround(gradient * this.scale);
        this.gradients[optimizer] = Math.fround(sum);
        return "ok";
      }
      case "zeroGrad":
        this.gradients[action.optimizer] = undefined;
        return "ok";
      case "unscale": {
        const stage = this.stages.get(action.optimizer);
        if (stage === "unscaled") return "double-unscale";
        if (stage === "stepped") return "unscale-after-step";
        return this.#check(action.optimizer, true);
      }
      case "step":
        return this.#step(action.optimizer);
      case "update":
        return this.#update();
    }
  }

  #check(optimizer: number, inPlace: boolean): ScalerMistake | "ok" {
    if (!this.scaled && this.steppedBefore && !this.steppedBefore.has(optimizer)) {
      return "scale-changed";
    }
    const gradient = this.gradients[optimizer];
    if (gradient === undefined) return "no-gradients";
    this.found.set(optimizer, !Number.isFinite(gradient));
    this.stages.set(optimizer, "unscaled");
    if (inPlace) this.gradients[optimizer] = Math.fround(gradient / this.scale);
    return "ok";
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
    const update = fuses ? Math.fround(gradient / this.scale) : gradient;
    this.parameters[optimizer] = Math.fround((this.parameters[optimizer] as number) - update);
    return "ok";
  }

  #update(): ScalerMistake | "ok" {
    if (this.stages.size === 0) return "no-checks";
    const foundInf = [...this.found.values()].includes(true);
    const scaleBefore = this.scale;
    if (foundInf) {
      if (this.scale === FLOOR && !this.#overflowing) this.collapses.push(this.step + 1);
      // Reported once until a step without overflow.
      this.#overflowing ||= this.scale === FLOOR;
      this.scale = Math.max(this.scale / 2, FLOOR);
      this.tracker = 0;
    } else {
      this.#overflowing = false;
      this.tracker += 1;
      if (this.tracker === INTERVAL) {
        this.scale *= 2;
        this.tracker = 0;
      }
    }
    this.step += 1;
    const optimizers = [...this.stages].map(([optimizer, stage]) =>
      stage === "stepped" && !this.found.get(optimizer) ? "applied" : "skipped",
    );
    this.outcomes.push({
      step: this.step,
      status: optimizers.includes("skipped") ? "skipped" : "applied",
      optimizers,
      foundInf,
      scaleBefore,
      scaleAfter: this.scale,
      lostBefore: 0,
    });
    const stepped = [...this.stages].filter(([, stage]) => stage === "stepped");
    this.steppedBefore = this.scaled ? new Set(stepped.map(([optimizer]) => optimizer)) : undefined;
    this.scaled = false;
    this.stages.clear();
    this.found.clear();
    return "ok";
  }
}

function attempt(call: () => void): ScalerMistake | "ok" {
  try {
    call();
    return "ok";
  } catch (error) {
    if (error instanceof ScalerStateError) return (error as ScalerStateError).mistake;
    throw error;
  }
}

function perform(
  scaler: GradScaler<Float32Array>,
  optimizers: readonly Sgd[],
  action: Action,
): void {
  if (action.do === "update") {
    scaler.update();
    return;
  }
  const optimizer = optimizers[action.optimizer] as Sgd;
  if (action.do === "backward") {
    optimizer.backward([action.gradient], scaler.scale(Float32Array.of(1)));
  } else if (action.do === "zeroGrad") optimizer.zeroGrad();
  else scaler[action.do](optimizer);
}

async function drainAll(
  scaler: GradScaler<Float32Array>,
): Promise<{ outcomes: StepOutcome[]; collapses: number[] }> {
  const outcomes: StepOutcome[] = [];
  const collapses: number[] = [];
  for (;;) {
    try {
      outcomes.push(...(await scaler.drain()));
      return { outcomes, collapses };
    } catch (error) {
      const collapse = error as ScaleCollapseError;
      outcomes.push(...collapse.outcomes);
      collapses.push(collapse.step);
    }
  }
}

const optimizer = fc.integer({ min: 0, max: 1 });
const gradient = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: -9, max: 9 }) },
  { weight: 1, arbitrary: fc.constantFrom(Number.POSITIVE_INFINITY, Number.NaN) },
);
const anything: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ do: fc.constant("backward" as const), optimizer, gradient }),
  fc.record({ do: fc.constantFrom("unscale", "step", "zeroGrad"), optimizer }),
  fc.record({ do: fc.constant("update" as const) }),
);
/** A correct step, so that traces get far; arbitrary calls in between make the mistakes. */
const plainStep: fc.Arbitrary<Action[]> = fc
  .tuple(optimizer, gradient, fc.boolean())
  .map(([optimizer, gradient, unscale]) => [
    { do: "zeroGrad", optimizer },
    { do: "backward", optimizer, gradient },
    ...(unscale ? [{ do: "unscale", optimizer } as const] : []),
    { do: "step", optimizer },
    { do: "update" },
  ]);
const program = fc
  .array(
    fc.oneof(
      plainStep,
      anything.map((action) => [action]),
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.flat());

test("every order of calls gives torch's errors, updates, scales and outcomes", async () => {
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(program, async (actions) => {
      const model = new Model();
      const scaler = new GradScaler(float32Primitives, {
        initScale: 4,
        growthInterval: INTERVAL,
        minScale: FLOOR,
        outcomeSchedule: false,
      });
      const optimizers = [new Sgd([0]), new Sgd([0], true)];
      const expected = actions.map((action) => model.run(action));
      const found = actions.map((action) => attempt(() => perform(scaler, optimizers, action)));
      expect(found).toEqual(expected);
      for (const result of found) seen.set(result, (seen.get(result) ?? 0) + 1);
      expect(optimizers.map(({ parameters }) => parameters[0])).toEqual(model.parameters);
      expect(optimizers.map((each) => each.gradient?.[0])).toEqual(model.gradients);
      expect(await scaler.getScale()).toBe(model.scale);
      const { outcomes, collapses } = await drainAll(scaler);
      expect(outcomes).toEqual(model.outcomes);
      expect(collapses).toEqual(model.collapses);
      for (const { status } of outcomes) seen.set(status, (seen.get(status) ?? 0) + 1);
      seen.set("collapse", (seen.get("collapse") ?? 0) + collapses.length);
    }),
    { numRuns: 1500 },
  );
  const unseen = [
    "ok",
    "double-unscale",
    "unscale-after-step",
    "double-step",
    "no-checks",
    "no-gradients",
    "scale-changed",
    "applied",
    "skipped",
    "collapse",
  ].filter((what) => (seen.get(what) ?? 0) === 0);
  expect(unseen).toEqual([]);
});
