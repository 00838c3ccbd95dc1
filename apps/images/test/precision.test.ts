import { UsageError } from "@halfstep/trainer/cli";
import { describe, expect, it } from "vitest";
import { type ChosenPrecision, choosePrecision, type PrecisionFlags } from "../src/precision.js";

interface Outcome {
  readonly recipe: string;
  readonly params: string;
  readonly scale: number | "dynamic";
  readonly warnings: readonly string[];
}

const outcomeOf = ({ recipe, warnings }: ChosenPrecision): Outcome => ({
  ...{ recipe: recipe.name, params: recipe.params, scale: recipe.lossScale, warnings },
});

const ignored = (flag: string): string =>
  `Warning: ${flag} is ignored, since nothing is float16: add --fp16`;
const superseded = (flag: string): string =>
  `--dynamic-loss-scale supersedes ${flag}, which is ignored`;
const static128: PrecisionFlags = { staticLossScale: 128 };
const dynamic: PrecisionFlags = { dynamicLossScale: true };

// Rows of main_fp16_optimizer.py, of main_amp.py, and of what neither has a rule for.
it.each<[PrecisionFlags, string, string, number | "dynamic", readonly string[]]>([
  [{}, "float32", "float32", 1, []],
  [{ fp16: true }, "O2", "float16", 1, []],
  [{ fp16: true, ...static128 }, "O2", "float16", 128, []],
  [{ fp16: true, ...dynamic }, "O2", "float16", "dynamic", []],
  [
    { fp16: true, ...static128, ...dynamic },
    ...(["O2", "float16", "dynamic", [superseded("--static-loss-scale 128")]] as const),
  ],
  // A loss scale alone means --fp16.
  [static128, "O2", "float16", 128, []],
  [dynamic, "O2", "float16", "dynamic", []],
  [
    { ...static128, ...dynamic },
    ...(["O2", "float16", "dynamic", [superseded("--static-loss-scale 128")]] as const),
  ],
  [{ optLevel: "O0" }, "O0", "float32", 1, []],
  [{ optLevel: "O1" }, "O1", "float32", "dynamic", []],
  [{ optLevel: "O2" }, "O2", "float16", "dynamic", []],
  [{ optLevel: "O3" }, "O3", "float16", 1, []],
  [{ optLevel: "O2", lossScale: "128.0" }, "O2", "float16", 128, []],
  [{ optLevel: "O3", lossScale: "dynamic" }, "O3", "float16", "dynamic", []],
  [{ optLevel: "O0", lossScale: "8" }, "O0", "float32", 8, []],
  [{ lossScale: "128" }, "O2", "float16", 128, []],
  [{ fp16: true, lossScale: "128" }, "O2", "float16", 128, []],
  [{ optLevel: "O2", ...static128 }, "O2", "float16", 128, []],
  [
    { optLevel: "O1", lossScale: "64", ...dynamic },
    ...(["O1", "float32", "dynamic", [superseded("--loss-scale 64")]] as const),
  ],
  [{ optLevel: "O0", ...static128 }, "O0", "float32", 1, [ignored("--static-loss-scale 128")]],
  [
    { optLevel: "O1", fp16: true },
    ...(["O1", "float32", "dynamic"] as const),
    ["--opt-level O1 supersedes --fp16, which is O2 without loss scaling"],
  ],
  [
    { keepBatchnormFp32: "True" },
    ...(["float32", "float32", 1] as const),
    ["--keep-batchnorm-fp32 is ignored without --opt-level or --fp16"],
  ],
  [{ precision: "float16" }, "float16", "float32", "dynamic", []],
  [{ precision: "float16", ...static128 }, "float16", "float32", 128, []],
  [
    { precision: "bfloat16", ...dynamic },
    "bfloat16",
    "float32",
    1,
    [ignored("--dynamic-loss-scale")],
  ],
])("%o", (flags, recipe, params, scale, warnings) => {
  expect(outcomeOf(choosePrecision(flags))).toEqual({ recipe, params, scale, warnings });
});

describe("the scaler", () => {
  it("is FP16_Optimizer's or amp's, each with its own start", () => {
    expect(choosePrecision({ fp16: true, ...dynamic }).scaler).toEqual({ preset: "apexFp16Utils" });
    expect(choosePrecision({ optLevel: "O2" }).scaler).toEqual({ preset: "apex" });
    expect(choosePrecision({ optLevel: "O2", initScale: 1024 }).scaler).toEqual({
      ...{ preset: "apex", initScale: 1024 },
    });
    expect(choosePrecision({ fp16: true, ...static128 }).scaler).toEqual({
      ...{ preset: "static", initScale: 128 },
    });
    expect(choosePrecision({ fp16: true }).scaler).toEqual({ preset: "static", initScale: 1 });
    expect(choosePrecision({ fp16: true, ...static128, initScale: 4 }).warnings).toEqual([
      "--init-scale 4 is ignored: the loss scale is not dynamic",
    ]);
  });

  it("starts where --init-scale says, which means a dynamic scale, and float16", () => {
    for (const flags of [{}, { fp16: true }]) {
      const chosen = choosePrecision({ ...flags, initScale: 65536 });
      expect(outcomeOf(chosen)).toEqual({
        ...{ recipe: "O2", params: "float16", scale: "dynamic", warnings: [] },
      });
      expect(chosen.scaler).toEqual({ preset: "apexFp16Utils", initScale: 65536 });
    }
    const single = choosePrecision({ precision: "float32", initScale: 65536 });
    expect(outcomeOf(single)).toMatchObject({ recipe: "float32", scale: 1 });
  });

  it("of batch norm, a level keeps what --keep-batchnorm-fp32 says", () => {
    const keeps = (flags: PrecisionFlags): boolean =>
      choosePrecision(flags).recipe.keepBatchNormFloat32;
    expect([
      keeps({ optLevel: "O2" }),
      keeps({ optLevel: "O2", keepBatchnormFp32: "False" }),
      keeps({ optLevel: "O3" }),
      keeps({ optLevel: "O3", keepBatchnormFp32: "True" }),
      keeps({ fp16: true }),
    ]).toEqual([true, false, false, true, true]);
  });
});

it.each<[PrecisionFlags, string]>([
  [{ optLevel: "O1", keepBatchnormFp32: "True" }, "with O1 batch norm computes in float32"],
  [{ optLevel: "O2", lossScale: "much" }, 'it must be a positive number or "dynamic"'],
  [{ optLevel: "O2", lossScale: "-1" }, "it must be a positive number"],
  [{ fp16: true, lossScale: "64", staticLossScale: 128 }, "contradict each other"],
  [{ fp16: true, precision: "bfloat16" }, "--precision and --fp16 both choose a precision"],
  [{ optLevel: "O1", precision: "O2" }, "--precision and --opt-level both choose"],
])("%o is refused", (flags, message) => {
  expect(() => choosePrecision(flags)).toThrow(message);
  expect(() => choosePrecision(flags)).toThrow(UsageError);
});
