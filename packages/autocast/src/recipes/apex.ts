import { RecipeError } from "../errors.js";
import type { CastDType } from "../policy.js";
import { mustBe } from "./must-be.js";
import type { Recipe } from "./recipe.js";

/** The optimization levels of NVIDIA's apex. */
export type ApexLevel = "O0" | "O1" | "O2" | "O3";

/** Replacements of a level's properties: apex's arguments, and the strings of its command line. */
export interface ApexOverrides {
  readonly castModelType?: CastDType | undefined;
  readonly keepBatchNormFloat32?: boolean | "True" | "False" | undefined;
  readonly masterWeights?: boolean | undefined;
  /** A number, a number in a string, or `"dynamic"`. */
  readonly lossScale?: number | string | undefined;
  /** The dtype to which the model's results are cast. Default float32, as in apex, except under O1. */
  readonly castModelOutputs?: CastDType | undefined;
}

interface ApexProperties {
  readonly castModelType?: CastDType;
  readonly keepBatchNormFloat32?: boolean;
  readonly masterWeights?: boolean;
  readonly lossScale: number | "dynamic";
}

/** apex's property table (amp/frontend.py); what is left out is its None. O1 alone patches functions. */
export const apexLevels: Readonly<Record<ApexLevel, ApexProperties>> = {
  O0: {
    castModelType: "float32",
    masterWeights: false,
    lossScale: 1,
  },
  O1: {
    lossScale: "dynamic",
  },
  O2: {
    castModelType: "float16",
    keepBatchNormFloat32: true,
    masterWeights: true,
    lossScale: "dynamic",
  },
  O3: {
    castModelType: "float16",
    keepBatchNormFloat32: false,
    masterWeights: false,
    lossScale: 1,
  },
};

const overridable: readonly string[] = [
  "castModelType",
  "keepBatchNormFloat32",
  "masterWeights",
  "lossScale",
  "castModelOutputs",
] satisfies (keyof ApexOverrides)[];

/**
 * The recipe of an apex optimization level, some of its properties replaced. O0 is float32, O1 casts op by op, O2 stores
 * the model in float16 with float32 masters and batch norm, O3 stores all of it in float16.
 *
 * @throws RecipeError where apex's `amp.initialize` refuses: an unknown level, properties that O1 does not have, and values
 *   of the wrong kind; and for overrides by an unknown name.
 * @example
 * const recipe = apexRecipe("O2", { lossScale: "128.0", keepBatchNormFloat32: "True" });
 */
export function apexRecipe(level: ApexLevel, overrides: ApexOverrides = {}): Recipe {
  if (!Object.hasOwn(apexLevels, level))
    throw new RecipeError(
      `there is no optimization level ${String(level)}: use O0 to O3, with the letter O`,
    );
  const properties = apexLevels[level];
  const unknown = Object.keys(overrides).find((name) => !overridable.includes(name));
  if (unknown !== undefined)
    throw new RecipeError(
      `a level has no ${JSON.stringify(unknown)}: it has ${overridable.join(", ")}`,
    );
  if (level === "O1") refuseForO1(overrides);
  const keeps = booleanOf(overrides.keepBatchNormFloat32) ?? properties.keepBatchNormFloat32;
  const params = overrides.castModelType ?? properties.castModelType ?? "float32";
  const isPerOp = level === "O1";
  return {
    name: level,
    params,
    compute: isPerOp ? "float16" : params,
    casting: isPerOp ? "perOp" : "whole",
    output: overrides.castModelOutputs ?? (isPerOp ? null : "float32"),
    keepBatchNormFloat32: keeps ?? params === "float32",
    masterWeights:
      (overrides.masterWeights ?? properties.masterWeights ?? false) && params !== "float32",
    lossScale:
      overrides.lossScale === undefined ? properties.lossScale : lossScaleOf(overrides.lossScale),
    policies: {},
    modules: {},
  };
}

function refuseForO1({ castModelType, keepBatchNormFloat32, masterWeights }: ApexOverrides): void {
  if (castModelType !== undefined && castModelType !== "float32")
    throw new RecipeError(
      `with O1 weights are float32, but castModelType is ${castModelType}: leave it out, or use O2 or O3`,
    );
  if (keepBatchNormFloat32 !== undefined)
    throw new RecipeError(
      `with O1 batch norm computes in float32, but keepBatchNormFloat32 is ${keepBatchNormFloat32}: leave it out, or use O2 or O3`,
    );
  if (masterWeights !== undefined)
    throw new RecipeError(
      `with O1 weights are float32, but masterWeights is ${masterWeights}: leave it out, or use O2 or O3`,
    );
}

function booleanOf(value: boolean | string | undefined): boolean | undefined {
  if (value === undefined || typeof value === "boolean") return value;
  if (value === "True" || value === "False") return value === "True";
  return mustBe("keepBatchNormFloat32", value, 'a boolean, "True" or "False"');
}

/** A loss scale as command lines give it. */
export function lossScaleOf(value: number | string): number | "dynamic" {
  if (value === "dynamic") return value;
  const scale = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof scale !== "number" || !(scale > 0 && scale < Number.POSITIVE_INFINITY))
    mustBe("lossScale", value, 'a positive number or "dynamic"');
  return scale;
}
