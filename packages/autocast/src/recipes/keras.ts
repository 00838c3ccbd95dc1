import { RecipeError } from "../errors.js";
import type { CastDType } from "../policy.js";
import type { ModulePrecision, Recipe } from "./recipe.js";

/** Names of Keras' dtype policies: one dtype for all, or float32 variables with 16-bit computation. */
export type KerasPolicy = CastDType | "mixed_float16" | "mixed_bfloat16";

/** Policies by layer, as `keras.dtype_policies.DTypePolicyMap`: `""` is the default, others are module paths or patterns. */
export type KerasPolicyMap = Readonly<Record<string, KerasPolicy>>;

const policies: readonly string[] = [
  "float32",
  "float16",
  "bfloat16",
  "mixed_float16",
  "mixed_bfloat16",
] satisfies KerasPolicy[];

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
  const { params, compute } = dtypesOf(standard);
  const modules: [string, ModulePrecision][] = Object.entries(layers).map(([path, name]) => [
    path,
    { dtype: dtypesOf(name).compute },
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

/** The dtypes of a policy's parameters and of its computation. */
function dtypesOf(policy: string): { readonly params: CastDType; readonly compute: CastDType } {
  if (!policies.includes(policy))
    throw new RecipeError(`there is no dtype policy "${policy}": use ${policies.join(", ")}`);
  const compute = policy.replace("mixed_", "") as CastDType;
  return { params: compute === policy ? compute : "float32", compute };
}
