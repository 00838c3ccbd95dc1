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

describe("presets", () => {
  test("have the documented starting points", () => {
    const names = ["torch", "apex", "apexFp16Utils", "megatron", "jmp", "keras", "paper"] as const;
    const start = names.map((name) => {
      const { initScale, growthInterval, minScale } = scalerRule(name);
      return [name, Math.log2(initScale), growthInterval, minScale];
    });
    expect(start).toEqual([
      ["torch", 16, 2000, 0],
      ["apex", 16, 2000, 0],
      ["apexFp16Utils", 32, 1000, 1],
      ["megatron", 32, 1000, 1],
      ["jmp", 15, 2000, 1],
      ["keras", 15, 2000, 0],
      ["paper", 24, 2000, 2 ** -16],
    ]);
  });

  test("static never changes", () => {
    const rule = scalerRule("static", { initScale: 128 });
    expect(new Set(scales(rule, "!!....!!."))).toEqual(new Set([128]));
  });

  test("hysteresis is refilled by clean steps in apex and by growth in Megatron", () => {
    const options = { initScale: 64, growthInterval: 4, hysteresis: 2 };
    const trace = "!.!.!!....!!";
    expect(scales(scalerRule("apexHysteresis", options), trace)).toEqual([
      64, 64, 64, 64, 64, 32, 32, 32, 32, 64, 64, 32,
    ]);
    expect(scales(scalerRule("megatron", options), trace)).toEqual([
      64, 64, 32, 32, 16, 8, 8, 8, 8, 16, 16, 8,
    ]);
  });

  test("state shows a hysteresis tracker only where there is hysteresis", () => {
    expect(initialScaleState(scalerRule("torch"))).toEqual({ scale: 65536, growthTracker: 0 });
    expect(follow(scalerRule("apexHysteresis"), "!")).toEqual([
      { scale: 65536, growthTracker: 0, hysteresisTracker: 1 },
    ]);
  });

  // Transcribed from the systems' own sources, in their own terms; see the presets for which.
  const systems: Record<string, { rule: ScaleRule; start(): (overflow: boolean) => number }> = {
    torch: {
      rule: scalerRule("torch", { growthInterval: 5 }),
      start() {
        let scale = 65536;
        let tracker = 0;
        return (overflow) => {
          if (overflow) {
            scale = Math.fround(scale * 0.5);
            tracker = 0;
          } else if (tracker + 1 === 5) {
            const grown = Math.fround(scale * 2);
            if (Number.isFinite(grown)) scale = grown;
            tracker = 0;
          } else tracker += 1;
          return scale;
        };
      },
    },
    apex: {
      rule: scalerRule("apex", { growthInterval: 5 }),
      start() {
        let scale = 2 ** 16;
        let unskipped = 0;
        return (overflow) => {
          if (overflow) {
            scale /= 2;
            unskipped = 0;
          } else unskipped += 1;
          if (unskipped === 5) {
            scale = Math.min(2 ** 24, scale * 2);
            unskipped = 0;
          }
          return scale;
        };
      },
    },
    apexHysteresis: {
      rule: scalerRule("apexHysteresis", { growthInterval: 5, hysteresis: 3 }),
      start() {
        let scale = 65536;
        let tracker = 0;
        let hysteresis = 3;
        return (overflow) => {
          if (overflow) {
            hysteresis -= 1;
            tracker = 0;
            if (hysteresis <= 0) scale = Math.fround(scale * 0.5);
            return scale;
          }
          tracker += 1;
          if (tracker === 5) {
            scale = Math.fround(scale * 2);
            tracker = 0;
          }
          hysteresis = 3;
          return scale;
        };
      },
    },
    apexFp16Utils: {
      rule: scalerRule("apexFp16Utils", { growthInterval: 5 }),
      start() {
        let scale = 2 ** 32;
        let iteration = 0;
        let lastOverflow = -1;
        return (overflow) => {
          if (overflow) {
            scale = Math.max(scale / 2, 1);
            lastOverflow = iteration;
          } else if ((iteration - lastOverflow) % 5 === 0) scale *= 2;
          iteration += 1;
          return scale;
        };
      },
    },
    megatron: {
      rule: scalerRule("megatron", { growthInterval: 5, hysteresis: 3 }),
      start() {
        let scale = 2 ** 32;
        let tracker = 0;
        let hysteresis = 3;
        return (overflow) => {
          if (overflow) {
            tracker = 0;
            hysteresis -= 1;
            if (hysteresis <= 0) scale = Math.max(scale * 0.5, 1);
          } else {
            tracker += 1;
            if (tracker === 5) {
              tracker = 0;
              hysteresis = 3;
              scale *= 2;
            }
          }
          return scale;
        };
      },
    },
    jmp: {
      rule: scalerRule("jmp", { growthInterval: 5 }),
      start() {
        let scale = 2 ** 15;
        let counter = 0;
        return (overflow) => {
          if (overflow) scale = Math.max(1, scale / 2);
          else if (counter === 4 && Number.isFinite(Math.fround(scale * 2))) scale *= 2;
          counter = overflow ? 0 : (counter + 1) % 5;
          return scale;
        };
      },
    },
  };

  for (const [name, { rule, start }] of Object.entries(systems)) {
    test(`${name} equals its source on random traces`, () => {
      let steps = 0;
      const trace = fc.array(fc.boolean(), { minLength: 1, maxLength: 80 });
      const biased = fc.array(
        fc.integer({ min: 0, max: 9 }).map((x) => x === 0),
        { minLength: 1, maxLength: 160 },
      );
      fc.assert(
        fc.property(fc.oneof(trace, biased), (found) => {
          const theirs = found.map(start());
          steps += found.length;
          expect(scales(rule, found)).toEqual(theirs);
        }),
        { numRuns: 1000 },
      );
      expect(steps).toBeGreaterThan(1000);
    });
  }
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
      ["growthFactor", 1 + 2 ** -30],
      ["growthFactor", Number.NaN],
      ["backoffFactor", -1],
      ["backoffFactor", 0],
      ["backoffFactor", 1],
      ["growthInterval", 0],
      ["growthInterval", 1.5],
      ["growthInterval", 2 ** 24 + 1],
      ["hysteresis", 0],
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
  });

  test("rounds to float32, so that every device multiplies by the same bits", () => {
    const rule = scalerRule(undefined, { growthFactor: 1.1, backoffFactor: 0.3, initScale: 0.1 });
    expect([rule.growthFactor, rule.backoffFactor, rule.initScale]).toEqual(
      [1.1, 0.3, 0.1].map(Math.fround),
    );
    expect(scalerRule(undefined, { maxScale: Number.POSITIVE_INFINITY }).maxScale).toBe(
      3.4028234663852886e38,
    );
  });

  test("survives JSON, which jmp's floor did not survive", () => {
    for (const preset of ["torch", "megatron", "static"] as const) {
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
