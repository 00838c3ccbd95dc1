import { RecipeError } from "../errors.js";
import type { CastDType } from "../policy.js";
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
  readonly castModelType: CastDType | undefined;
  readonly patchTorchFunctions: boolean;
  readonly keepBatchNormFloat32: boolean | undefined;
  readonly masterWeights: boolean | undefined;
  readonly lossScale: number | "dynamic";
}

/** apex's property table (amp/frontend.py); undefined is its None. */
export const apexLevels: Readonly<Record<ApexLevel, ApexProperties>> = {
  O0: {
    castModelType: "float32",
    patchTorchFunctions: false,
    keepBatchNormFloat32: undefined,
    masterWeights: false,
    lossScale: 1,
  },
  O1: {
    castModelType: undefined,
    patchTorchFunctions: true,
    keepBatchNormFloat32: undefined,
    masterWeights: undefined,
    lossScale: "dynamic",
  },
  O2: {
    castModelType: "float16",
    patchTorchFunctions: false,
    keepBatchNormFloat32: true,
    masterWeights: true,
    lossScale: "dynamic",
  },
  O3: {
    castModelType: "float16",
    patchTorchFunctions: false,
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
      `unexpected optimization level ${String(level)}: options are "O0", "O1", "O2" and "O3", where the first character is the letter O, not the number zero`,
    );
  const properties = apexLevels[level];
  const unknown = Object.keys(overrides).find((name) => !overridable.includes(name));
  if (unknown !== undefined)
    throw new RecipeError(
      `${level} has no property ${JSON.stringify(unknown)} to replace: it has ${overridable.join(", ")}`,
    );
  if (level === "O1") refuseForO1(overrides);
  const keeps = booleanOf(overrides.keepBatchNormFloat32) ?? properties.keepBatchNormFloat32;
  const params = overrides.castModelType ?? properties.castModelType ?? "float32";
  const isPerOp = properties.patchTorchFunctions;
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
      `O1 casts the inputs of ops and leaves the model's weights in float32, but castModelType is ${castModelType}: use O2 or O3 to store the model in another dtype`,
    );
  if (keepBatchNormFloat32 !== undefined)
    throw new RecipeError(
      `with O1 batch norm computes in float32 in any case, but keepBatchNormFloat32 is ${keepBatchNormFloat32}: leave it out, or use O2 or O3`,
    );
  if (masterWeights !== undefined)
    throw new RecipeError(
      `masterWeights is ${masterWeights}, but with O1 the model's weights are float32 themselves: leave it out, or use O2`,
    );
}

function booleanOf(value: boolean | string | undefined): boolean | undefined {
  if (value === undefined || typeof value === "boolean") return value;
  if (value === "True" || value === "False") return value === "True";
  throw new RecipeError(
    `keepBatchNormFloat32 is ${JSON.stringify(value)}: it must be a boolean, "True" or "False", or be left out`,
  );
}

/** A loss scale as command lines give it. */
export function lossScaleOf(value: number | string): number | "dynamic" {
  if (value === "dynamic") return value;
  const scale = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof scale !== "number" || !(scale > 0 && scale < Number.POSITIVE_INFINITY))
    throw new RecipeError(
      `lossScale is ${JSON.stringify(value)}: it must be a positive number or "dynamic"`,
    );
  return scale;
}
