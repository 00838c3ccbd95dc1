import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  float32Primitives,
  GradScaler,
  initialScaleState,
  type ScalerPreset,
  scalerRule,
} from "../src/index.js";
import { nextScale } from "../src/rule.js";
import torchFactors from "./golden/torch-factors.json" with { type: "json" };
import torchTraces from "./golden/torch-update-scale.json" with { type: "json" };
import { systems } from "./systems.js";
import { outcomesOf } from "./traces.js";

const overflows = fc.oneof(
  fc.array(fc.boolean(), { minLength: 1, maxLength: 80 }),
  fc.array(
    fc.integer({ min: 0, max: 9 }).map((x) => x === 0),
    { minLength: 1, maxLength: 160 },
  ),
  fc.array(
    fc.integer({ min: 0, max: 9 }).map((x) => x !== 0),
    { minLength: 1, maxLength: 60 },
  ),
);

/** Scales go down, and up again. */
const changing = Array.from({ length: 80 }, (_, i) => i < 30);

describe("presets equal the systems they are named after, on random traces", () => {
  for (const [name, { preset, options, start }] of Object.entries(systems)) {
    test(name, () => {
      const rule = scalerRule(preset, options);
      const seen = new Set<string>();
      fc.assert(
        fc.property(overflows, (trace) => {
          const update = start();
          const theirs: (number | "raises")[] = [];
          for (const overflow of trace) {
            theirs.push(update(overflow));
            if (theirs.at(-1) === "raises") break;
          }
          const ours = outcomesOf(rule, trace.slice(0, theirs.length));
          for (const scale of theirs) seen.add(String(scale));
          // Where a system ends the run, ours reports a collapse and keeps the scale.
          const expected = theirs.map((scale, i) =>
            scale === "raises" ? [ours[i - 1]?.[0] ?? rule.initScale, true] : [scale, ours[i]?.[1]],
          );
          expect(ours).toEqual(expected);
          const raised = theirs.at(-1) === "raises" ? theirs.length - 1 : -1;
          if (preset === "deepspeed" || rule.atFloor === "keep") {
            expect(ours.findIndex(([, isCollapse]) => isCollapse)).toBe(raised);
          }
        }),
        { numRuns: 1000, examples: [[changing]] },
      );
      expect(seen.size).toBeGreaterThan(preset === "static" ? 0 : 4);
    });
  }
});

test("torch's rule equals torch itself, through subnormal scales", () => {
  const differences = torchTraces.flatMap(({ options, trace, startTracker, ...expected }) => {
    const rule = scalerRule("torch", options);
    let state = { ...initialScaleState(rule), growthTracker: startTracker ?? 0 };
    const trackers = expected.trackers.split(" ").map(Number);
    return [...trace].flatMap((step, i) => {
      state = nextScale(state, step === "!", rule).state;
      const bits = new Uint32Array(Float32Array.of(state.scale).buffer)[0] as number;
      const wanted = Number.parseInt(expected.scaleBits.slice(i * 8, i * 8 + 8), 16);
      return bits === wanted && state.growthTracker === trackers[i] ? [] : [[options, i, state]];
    });
  });
  expect(torchTraces.length).toBe(6);
  expect(differences).toEqual([]);
});

test("torch's rule equals torch's arithmetic with any factors: float64, rounded once more", () => {
  const scalesOf = ({ options, trace }: (typeof torchFactors)[number]): string =>
    outcomesOf(scalerRule("torch", options), trace)
      .map(([scale]) =>
        new Uint32Array(Float32Array.of(scale).buffer)[0]?.toString(16).padStart(8, "0"),
      )
      .join("");
  const different = torchFactors.filter((each) => scalesOf(each) !== each.scaleBits);
  expect([torchFactors.length, different]).toEqual([48, []]);
});

describe("literal sequences", () => {
  const base2 = (rule: ReturnType<typeof scalerRule>, trace: string): string =>
    outcomesOf(rule, trace)
      .map(([scale, isCollapse]) => `${Math.log2(scale)}${isCollapse ? "#" : ""}`)
      .join(" ");

  test("of one trace, where every system says something else", () => {
    const trace = "....!!....!.!......!!!";
    const presets: ScalerPreset[] = [
      "torch",
      "apexHysteresis",
      "megatron",
      "deepspeed",
      "deepspeedFp16Optimizer",
      "fairseq",
    ];
    const found = presets.map((preset) => {
      const options = { initScale: 16, growthInterval: 4 };
      const tolerance = preset === "fairseq" ? 0.25 : 0;
      return `${preset}: ${base2(scalerRule(preset, { ...options, tolerance }), trace)}`;
    });
    expect(found).toEqual([
      "torch: 4 4 4 5 4 3 3 3 3 4 3 3 2 2 2 2 3 3 3 2 1 0",
      "apexHysteresis: 4 4 4 5 5 4 4 4 4 5 5 5 5 5 5 5 6 6 6 6 5 4",
      "megatron: 4 4 4 5 5 4 4 4 4 5 5 5 4 4 4 4 5 5 5 5 4 3",
      "deepspeed: 4 4 4 5 5 4 4 4 4 5 5 5 4 4 4 4 5 5 5 5 4 3",
      "deepspeedFp16Optimizer: 4 4 4 4 3 2 2 2 2 2 1 1 0 0 0 0 0 1 1 0 0# 0#",
      "fairseq: 4 4 4 5 4 3 3 3 3 4 3 3 2 2 2 2 3 3 3 2 1 0",
    ]);
  });

  test("of fairseq's tolerance: a share of the steps since the last change of the scale", () => {
    const rule = scalerRule("fairseq", { initScale: 16, growthInterval: 100, tolerance: 0.25 });
    // 1 of 5 is tolerated, 2 of 6 is not; after that 1 of 1 is not either, then 1 of 5 is.
    expect(base2(rule, "....!!!....!..!")).toBe("4 4 4 4 4 3 2 2 2 2 2 2 2 2 1");
  });

  test("of DeepSpeed, which raises at its least scale once hysteresis is spent", () => {
    const options = { initScale: 2, growthInterval: 3 };
    expect(base2(scalerRule("deepspeed", options), "!!!...!!!")).toBe("1 0 0# 0 0 1 1 0 0#");
    expect(base2(scalerRule("deepspeedFp16Optimizer", options), "!!!...!....")).toBe(
      "0 0# 0# 0 0 0 0# 0 0 0 1",
    );
  });

  test("of fairseq, which takes the last scale back when it would pass 1e-4", () => {
    const rule = scalerRule("fairseq", { initScale: 2 ** -11 });
    expect(base2(rule, "!!!!.")).toBe("-12 -13 -13# -13# -13");
  });

  test("of the systems' constants", () => {
    const names: ScalerPreset[] = [
      "torch",
      "apex",
      "apexHysteresis",
      "apexFp16Utils",
      "megatron",
      "deepspeed",
      "deepspeedFp16Optimizer",
      "fairseq",
      "jmp",
      "keras",
      "static",
      "paper",
    ];
    const table = names.map((name) => {
      const { initScale, growthInterval, hysteresis, minScale, dynamic } = scalerRule(name);
      return [name, Math.log2(initScale), dynamic && growthInterval, hysteresis, minScale];
    });
    expect(table).toEqual([
      ["torch", 16, 2000, 1, 0],
      ["apex", 16, 2000, 1, 0],
      ["apexHysteresis", 16, 2000, 2, 0],
      ["apexFp16Utils", 32, 1000, 1, 1],
      ["megatron", 32, 1000, 2, 1],
      ["deepspeed", 16, 1000, 2, 1],
      ["deepspeedFp16Optimizer", 32, 1000, 1, 1],
      ["fairseq", 15, 2000, 1, Math.fround(1e-4)],
      ["jmp", 15, 2000, 1, 1],
      ["keras", 15, 2000, 1, 0],
      ["static", 7, false, 1, 0],
      ["paper", 24, 2000, 1, 2 ** -16],
    ]);
  });
});

test("options that are true or false take nothing else", () => {
  for (const name of ["enabled", "allowNoGrad", "gradientNorm"])
    for (const [value, shown] of [
      [0, "0"],
      ["false", '"false"'],
      [null, "null"],
    ])
      expect(() => new GradScaler(float32Primitives, { [name as string]: value })).toThrow(
        `${name} is ${shown}: it must be true or false.`,
      );
});
