import { RecipeError } from "../errors.js";
import type { CastDType } from "../policy.js";
import type { ModulePrecision, Recipe } from "./recipe.js";

/** Names of Keras' dtype policies: one dtype for all, or float32 variables with 16-bit computation. */
export type KerasPolicy = CastDType | "mixed_float16" | "mixed_bfloat16";

/** Policies by layer, as `keras.dtype_policies.DTypePolicyMap`: `""` is the default, others are module paths or patterns. */
export type KerasPolicyMap = Readonly<Record<string, KerasPolicy>>;

/** As {@link Recipe}'s: parameters and computation of each of Keras' policies. */
const dtypesOf: Readonly<Record<KerasPolicy, { params: CastDType; compute: CastDType }>> = {
  float32: { params: "float32", compute: "float32" },
  float16: { params: "float16", compute: "float16" },
  bfloat16: { params: "bfloat16", compute: "bfloat16" },
  mixed_float16: { params: "float32", compute: "float16" },
  mixed_bfloat16: { params: "float32", compute: "bfloat16" },
};

/**
 * The recipe of a Keras policy: each layer casts its inputs and variables to the policy's compute dtype and runs in it.
 * Layers of other policies are named by path. As Keras' trainer does, `"mixed_float16"` scales the loss dynamically.
 *
 * @throws RecipeError for an unknown policy.
 * @example
 * kerasRecipe({ "": "mixed_float16", fc: "float32" });
 */
export function kerasRecipe(policy: KerasPolicy | KerasPolicyMap): Recipe {
  const { "": standard = "float32", ...layers } =
    typeof policy === "string" ? { "": policy } : policy;
  const { params, compute } = known(standard);
  const modules: [string, ModulePrecision][] = Object.entries(layers).map(([path, name]) => [
    path,
    { dtype: known(name).compute },
  ]);
  return {
    name: standard,
    params,
    compute,
    casting: "whole",
    output: null,
    keepBatchNormFloat32: params === "float32",
    masterWeights: false,
    lossScale: compute === "float16" && params === "float32" ? "dynamic" : 1,
    policies: {},
    modules: Object.fromEntries(modules),
  };
}

function known(policy: string): { params: CastDType; compute: CastDType } {
  if (!Object.hasOwn(dtypesOf, policy))
    throw new RecipeError(
      `there is no dtype policy "${policy}": use ${Object.keys(dtypesOf).join(", ")}`,
    );
  return dtypesOf[policy as KerasPolicy];
}
