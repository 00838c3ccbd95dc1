import type { CastDType, CastPolicies } from "../policy.js";
import { type AutocastOptions, autocast, type Synchronous } from "../region.js";
import { matchesPath } from "./module-path.js";

/**
 * The precision of a model and of its training, as data: it can be kept in a JSON file, and one file serves training,
 * evaluation, inference and export. Make one with `apexRecipe`, `jmpRecipe`, `kerasRecipe` or `autocastRecipe`, or with
 * `recipeOf` from a command line or a file.
 */
export interface Recipe {
  /** The name in reports: "O2", "params=float32,compute=float16,output=float32", "mixed_float16". */
  readonly name: string;
  /** The dtype in which parameters are stored. */
  readonly params: CastDType;
  /** The dtype to which ops are lowered; float32 lowers nothing. */
  readonly compute: CastDType;
  /**
   * - `"perOp"`: each op's cast policy decides whether it runs in `compute` (torch.amp, apex O1);
   * - `"whole"`: inputs and parameters are cast to `compute`, and everything runs in it (apex O2 and O3, JMP, Keras).
   */
  readonly casting: "perOp" | "whole";
  /** The dtype to which the model's floating results are cast; null leaves them unchanged. */
  readonly output: CastDType | null;
  /** Whether batch norm keeps float32 parameters where `params` is a 16-bit dtype. Its statistics are always float32. */
  readonly keepBatchNormFloat32: boolean;
  /** Whether the optimizer keeps float32 masters of 16-bit parameters. */
  readonly masterWeights: boolean;
  /** A fixed loss scale, where 1 is none, or `"dynamic"`. */
  readonly lossScale: number | "dynamic";
  /** Cast policies by op name that replace those the ops were defined with; `"*"` is every op that is not named. */
  readonly policies: CastPolicies;
  /** Exceptions by module path, such as `"fc"` or `"layer4.*.conv1"`; see {@link modulePrecisionOf}. */
  readonly modules: Readonly<Record<string, ModulePrecision>>;
}

/** The precision of the modules of one path, where it differs from the rest of the model. */
export interface ModulePrecision {
  /** Everything in the module runs in this dtype. Float32 parameters stay float32 there, others are stored in it. */
  readonly dtype?: CastDType;
  /** Cast policies by op name, for ops inside the module. */
  readonly policies?: CastPolicies;
}

/**
 * Calls `fn` under a recipe. Where ops are cast one by one, that is an autocast region with the recipe's policies.
 * Otherwise it is outside of all regions, because the model to which the recipe was applied casts itself.
 *
 * ```ts
 * const loss = withRecipe(recipe, () => crossEntropy(model.forward(x), labels));
 * ```
 */
export function withRecipe<T>(recipe: Recipe, fn: () => T & Synchronous<T>): T {
  const { compute, casting, policies } = recipe;
  return casting === "perOp" && compute !== "float32"
    ? autocast({ dtype: compute, policies }, fn)
    : autocast({ enabled: false, policies }, fn);
}

/**
 * The region in which every op runs in `compute`, whatever its own policy says, except as `policies` say. Batch norm keeps
 * its float32 parameters, since it computes in float32 in any case.
 */
export function wholeRegion(compute: CastDType, policies: CastPolicies = {}): AutocastOptions {
  // The dtype of a region that raises everything to float32 is never used.
  return compute === "float32"
    ? { dtype: "float16", policies: { "*": "float32", ...policies } }
    : {
        dtype: compute,
        policies: {
          "*": "lowerPrecision",
          batchNorm: "none",
          batchNormInference: "none",
          ...policies,
        },
      };
}

/**
 * The exception that holds for a module, if any. A pattern is a dotted path in which `*` stands for one name and `**` for
 * any number of them; it also covers everything below what it names. Where several match, the last one holds.
 */
export function modulePrecisionOf(recipe: Recipe, path: string): ModulePrecision | undefined {
  let found: ModulePrecision | undefined;
  for (const [pattern, precision] of Object.entries(recipe.modules))
    if (matchesPath(pattern, path)) found = precision;
  return found;
}
