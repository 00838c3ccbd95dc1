import { RecipeError } from "../errors.js";
import type { AutocastDType, CastDType } from "../policy.js";
import type { Recipe } from "./recipe.js";

/** A policy of DeepMind's JMP: one dtype each for parameters, computation and results. */
export interface Policy {
  readonly paramDtype: CastDType;
  readonly computeDtype: CastDType;
  readonly outputDtype: CastDType;
}

const dtypes: Readonly<Record<string, CastDType>> = {
  full: "float32",
  f32: "float32",
  float32: "float32",
  f16: "float16",
  float16: "float16",
  bf16: "bfloat16",
  bfloat16: "bfloat16",
};

/** The keys of a policy, which may be cut to their first letter. */
const keys = ["params", "compute", "output"] as const;

/**
 * Parses a policy as JMP's `get_policy` does: `"params=float32,compute=float16,output=float32"`, `"p=f32,c=bf16"`, or one
 * dtype for all three. What is left out follows: params are float32, compute follows params, output follows compute.
 *
 * @param half what the dtype "half" means; JMP takes bfloat16 on TPUs and else float16. Default float16.
 * @throws RecipeError for an unknown key or dtype, or a key given twice.
 */
export function parsePolicy(text: string, half: AutocastDType = "float16"): Policy {
  const dtypeOf = (name: string): CastDType => {
    if (name === "half") return half;
    if (!Object.hasOwn(dtypes, name))
      throw new RecipeError(
        `unknown dtype "${name}" in "${text}": use full, half, ${Object.keys(dtypes).slice(1).join(", ")}`,
      );
    return dtypes[name] as CastDType;
  };
  if (!text.includes("=")) {
    const dtype = dtypeOf(text.trim());
    return { paramDtype: dtype, computeDtype: dtype, outputDtype: dtype };
  }
  const given: Partial<Record<(typeof keys)[number], CastDType>> = {};
  for (const part of text.split(",")) {
    const [word = "", name = ""] = part.split("=").map((side) => side.trim());
    const key = keys.find((each) => word === each || word === each[0]);
    if (!key)
      throw new RecipeError(`unknown key "${word}" in "${text}": use params, compute and output`);
    if (given[key]) throw new RecipeError(`${word} is given twice in "${text}"`);
    given[key] = dtypeOf(name);
  }
  const { params = "float32" } = given;
  const { compute = params } = given;
  const { output = compute } = given;
  return { paramDtype: params, computeDtype: compute, outputDtype: output };
}

/** A policy in JMP's long form, which {@link parsePolicy} reads back. */
export const policyText = ({ paramDtype, computeDtype, outputDtype }: Policy): string =>
  `params=${paramDtype},compute=${computeDtype},output=${outputDtype}`;

/**
 * The recipe of a JMP policy. JMP leaves loss scaling to its caller: here it is dynamic where anything is float16, since
 * float16 gradients underflow without, and off elsewhere. Stored 16-bit parameters have no masters, as in JMP.
 */
export function jmpRecipe(policy: Policy | string): Recipe {
  const { paramDtype, computeDtype, outputDtype } =
    typeof policy === "string" ? parsePolicy(policy) : policy;
  const hasFloat16 = paramDtype === "float16" || computeDtype === "float16";
  return {
    name: policyText({ paramDtype, computeDtype, outputDtype }),
    params: paramDtype,
    compute: computeDtype,
    casting: "whole",
    output: outputDtype,
    keepBatchNormFloat32: paramDtype === "float32",
    masterWeights: false,
    lossScale: hasFloat16 ? "dynamic" : 1,
    policies: {},
    modules: {},
  };
}
