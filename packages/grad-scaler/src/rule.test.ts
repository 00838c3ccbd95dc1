import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  initialScaleState,
  nextScaleState,
  type ScaleRule,
  type ScaleState,
  scalerRule,
} from "./index.js";

/** States after each step of a trace, `"."` a clean step and `"!"` an overflow. */
function follow(rule: ScaleRule, trace: string | readonly boolean[]): ScaleState[] {
  const found = typeof trace === "string" ? [...trace].map((step) => step === "!") : trace;
  let state = initialScaleState(rule);
  return found.map((foundInf) => {
    state = nextScaleState(state, foundInf, rule);
    return state;
  });
}

const scales = (rule: ScaleRule, trace: string | readonly boolean[]): number[] =>
  follow(rule, trace).map(({ scale }) => scale);

describe("the default rule", () => {
  test("is torch's constants with a floor of 2^-16", () => {
    expect(scalerRule()).toMatchObject({
      initScale: 65536,
      growthFactor: 2,
      backoffFactor: 0.5,
      growthInterval: 2000,
      minScale: 2 ** -16,
    });
  });

  test("stops at the floor, where torch falls to 0 after 166 overflows", () => {
    const overflows = new Array<boolean>(200).fill(true);
    expect(scales(scalerRule(), overflows).at(-1)).toBe(2 ** -16);
    const torch = scales(scalerRule("torch"), overflows);
    expect(torch.indexOf(0) + 1).toBe(166);
  });

  test("grows from a tracker beyond the interval, where torch never grows again", () => {
    const loaded = { scale: 4, growthTracker: 9 };
    const next = (preset?: "torch") =>
      nextScaleState(loaded, false, scalerRule(preset, { growthInterval: 5 }));
    expect(next()).toEqual({ scale: 8, growthTracker: 0 });
    expect(next("torch")).toEqual({ scale: 4, growthTracker: 10 });
  });

  test("grows only to finite scales, and to the ceiling", () => {
    const every = { growthInterval: 1, initScale: 2 ** 126 };
    expect(scales(scalerRule("torch", every), "...")).toEqual([2 ** 127, 2 ** 127, 2 ** 127]);
    expect(scales(scalerRule("apex", { growthInterval: 1, initScale: 3e6 }), "....")).toEqual([
      6e6,
      12e6,
      2 ** 24,
      2 ** 24,
    ]);
  });
});

describe("nextScaleState", () => {
  test("static never changes", () => {
    const rule = scalerRule("static", { initScale: 128 });
    expect(new Set(scales(rule, "!!....!!."))).toEqual(new Set([128]));
  });

  test("shows only the trackers that the rule looks at", () => {
    expect(initialScaleState(scalerRule("torch"))).toEqual({ scale: 65536, growthTracker: 0 });
    expect(follow(scalerRule("apexHysteresis"), "!")).toEqual([
      { scale: 65536, growthTracker: 0, hysteresisTracker: 1 },
    ]);
    expect(follow(scalerRule("fairseq", { tolerance: 0.5 }), ".!.")).toEqual([
      { scale: 2 ** 15, growthTracker: 1, stepsSinceRescale: 1, overflowsSinceRescale: 0 },
      { scale: 2 ** 14, growthTracker: 0, stepsSinceRescale: 0, overflowsSinceRescale: 0 },
      { scale: 2 ** 14, growthTracker: 1, stepsSinceRescale: 1, overflowsSinceRescale: 0 },
    ]);
    expect(initialScaleState(scalerRule("deepspeedFp16Optimizer"))).toEqual({
      scale: 2 ** 32,
      growthTracker: -1,
    });
  });

  test("trackers stop counting where float32 does", () => {
    const state = { scale: 4, growthTracker: 2 ** 24, hysteresisTracker: -(2 ** 24) };
    const rule = scalerRule("megatron", { initScale: 4 });
    expect(nextScaleState(state, false, rule)).toEqual({ ...state, hysteresisTracker: -(2 ** 24) });
    expect(nextScaleState(state, true, rule)).toMatchObject({ hysteresisTracker: -(2 ** 24) });
  });
});

describe("scalerRule", () => {
  test("refuses what torch accepts and should not", () => {
    const wrong: [option: string, value: number][] = [
      ["initScale", 0],
      ["initScale", -1],
      ["initScale", Number.NaN],
      ["initScale", Number.POSITIVE_INFINITY],
      ["initScale", 1e-46],
      ["growthFactor", 1],
      ["growthFactor", Number.NaN],
      ["backoffFactor", -1],
      ["backoffFactor", 0],
      ["backoffFactor", 1],
      ["growthInterval", 0],
      ["growthInterval", 1.5],
      ["growthInterval", 2 ** 24 + 1],
      ["hysteresis", 0],
      ["growthDelay", -1],
      ["growthDelay", 0.5],
      ["tolerance", -0.1],
      ["tolerance", 1.5],
      ["tolerance", Number.NaN],
      ["targetUnderflow", -0.1],
      ["targetUnderflow", 1],
      ["targetUnderflow", Number.NaN],
      ["minScale", -1],
      ["minScale", 65537],
      ["maxScale", 65535],
    ];
    const accepted = wrong.filter(([option, value]) => {
      try {
        scalerRule("torch", { [option]: value });
        return true;
      } catch (error) {
        return !(
          error instanceof RangeError && error.message.startsWith(`${option} is ${value}: `)
        );
      }
    });
    expect(accepted).toEqual([]);
    expect(() => scalerRule("tf" as "torch")).toThrow(/choose one of torch, apex/);
    const words = { atFloor: "stop", hysteresisRefill: "never", underflowFormat: "float8" };
    for (const [option, value] of Object.entries({ ...words, raiseAtFloor: 1, dynamic: 0 })) {
      expect(() => scalerRule(undefined, { [option]: value })).toThrow(`${option} is ${value}: `);
    }
  });

  test("rounds scales to float32, in which devices hold them, and leaves factors as they are", () => {
    const rule = scalerRule(undefined, { growthFactor: 1.1, backoffFactor: 0.3, initScale: 0.1 });
    expect([rule.growthFactor, rule.backoffFactor, rule.initScale]).toEqual([
      1.1,
      0.3,
      Math.fround(0.1),
    ]);
    expect(scalerRule(undefined, { maxScale: Number.POSITIVE_INFINITY }).maxScale).toBe(
      3.4028234663852886e38,
    );
  });

  test("survives JSON, which jmp's floor did not survive", () => {
    for (const preset of ["torch", "megatron", "deepspeed", "fairseq", "static"] as const) {
      const rule = scalerRule(preset);
      expect(scalerRule(undefined, JSON.parse(JSON.stringify(rule)))).toEqual(rule);
    }
  });

  test("every state of every trace is float32 and within floor and ceiling", () => {
    const factors = fc.record({
      growthFactor: fc.double({ min: 1.01, max: 8, noNaN: true }),
      backoffFactor: fc.double({ min: 0.01, max: 0.99, noNaN: true }),
      growthInterval: fc.integer({ min: 1, max: 4 }),
      hysteresis: fc.integer({ min: 1, max: 3 }),
      growthDelay: fc.integer({ min: 0, max: 2 }),
      tolerance: fc.constantFrom(0, 0.1, 0.5),
      atFloor: fc.constantFrom("clamp" as const, "keep" as const),
      minScale: fc.constantFrom(0, 2 ** -16, 1),
      maxScale: fc.constantFrom(2 ** 24, 3e38),
    });
    fc.assert(
      fc.property(factors, fc.array(fc.boolean(), { maxLength: 200 }), (options, trace) => {
        const rule = scalerRule(undefined, options);
        const wrong = scales(rule, trace).filter(
          (scale) =>
            scale !== Math.fround(scale) || scale < rule.minScale || !(scale <= rule.maxScale),
        );
        expect(wrong).toEqual([]);
      }),
    );
  });
});
