import { RecipeError } from "../errors.js";
import type { CastDType, CastPolicy } from "../policy.js";
import { type ApexLevel, apexLevels, apexRecipe, lossScaleOf } from "./apex.js";
import { jmpRecipe } from "./jmp.js";
import { type KerasPolicy, kerasRecipe } from "./keras.js";
import { mustBe } from "./must-be.js";
import type { ModulePrecision, Recipe } from "./recipe.js";

/**
 * torch.amp as a recipe: float32 parameters, ops cast one by one by their policies, and dynamic loss scaling for float16.
 * float32 casts nothing.
 */
export const autocastRecipe = (compute: CastDType): Recipe => ({
  name: compute,
  params: "float32",
  compute,
  casting: "perOp",
  output: null,
  keepBatchNormFloat32: true,
  masterWeights: false,
  lossScale: compute === "float16" ? "dynamic" : 1,
  policies: {},
  modules: {},
});

/**
 * The recipe for a value from a command line or a JSON file.
 *
 * | given | recipe |
 * |---|---|
 * | `"float32"`, `"float16"`, `"bfloat16"` | {@link autocastRecipe}: torch.amp in that dtype |
 * | `"O0"` … `"O3"` | `apexRecipe` |
 * | `"mixed_float16"`, `"mixed_bfloat16"` | `kerasRecipe` |
 * | a string with `=`, such as `"p=f32,c=bf16"` | `jmpRecipe` |
 * | an object | the recipe itself; what it leaves out comes from the recipe that its `extends` names (default `"float32"`) |
 *
 * @throws RecipeError that names the member and what it may be.
 * @example
 * recipeOf(JSON.parse('{ "extends": "O2", "lossScale": 128, "modules": { "fc": { "dtype": "float32" } } }'));
 */
export function recipeOf(given: unknown): Recipe {
  if (typeof given === "string") return namedRecipe(given);
  if (typeof given !== "object" || given === null || Array.isArray(given))
    mustBe("a recipe", given, 'a name such as "O2" or an object');
  const { extends: base = "float32", ...members } = given as Record<string, unknown>;
  const result: Record<string, unknown> = { ...namedRecipe(base) };
  for (const [member, value] of Object.entries(members)) {
    if (!Object.hasOwn(checks, member))
      throw new RecipeError(
        `a recipe has no ${JSON.stringify(member)}: it has extends, ${Object.keys(checks).join(", ")}`,
      );
    result[member] = checks[member as keyof Recipe](value, member);
  }
  return result as unknown as Recipe;
}

function namedRecipe(name: unknown): Recipe {
  if (typeof name === "string") {
    if (castDTypes.some((dtype) => dtype === name)) return autocastRecipe(name as CastDType);
    if (Object.hasOwn(apexLevels, name)) return apexRecipe(name as ApexLevel);
    if (name.startsWith("mixed_")) return kerasRecipe(name as KerasPolicy);
    if (name.includes("=")) return jmpRecipe(name);
  }
  throw new RecipeError(
    `there is no recipe ${JSON.stringify(name)}: use float32, float16, bfloat16, O0 to O3, mixed_float16, mixed_bfloat16, or a policy such as "p=f32,c=bf16"`,
  );
}

type Check = (value: unknown, member: string) => unknown;

const oneOf =
  (...values: readonly unknown[]): Check =>
  (value, member) => {
    if (values.includes(value)) return value;
    mustBe(member, value, values.map((each) => JSON.stringify(each)).join(", "));
  };

const castDTypes: readonly CastDType[] = ["float32", "float16", "bfloat16"];
const castDType = oneOf(...castDTypes);
const policyNames: readonly CastPolicy[] = [
  "lowerPrecision",
  "float32",
  "float32Output",
  "promote",
  "none",
];

/** Checks of each member of a recipe from outside. */
const checks: Readonly<Record<keyof Recipe, Check>> = {
  name(value, member) {
    if (typeof value === "string" && value !== "") return value;
    mustBe(member, value, "a text");
  },
  params: castDType,
  compute: castDType,
  casting: oneOf("perOp", "whole"),
  output: oneOf(...castDTypes, null),
  keepBatchNormFloat32: oneOf(true, false),
  masterWeights: oneOf(true, false),
  lossScale: (value) => lossScaleOf(value as number),
  policies: entries((policy, member) =>
    typeof policy === "object" &&
    policy !== null &&
    "banned" in policy &&
    typeof policy.banned === "string"
      ? { banned: policy.banned }
      : oneOf(...policyNames)(policy, member),
  ),
  modules: entries(modulePrecision),
};

/** A record whose values are all checked. */
function entries(check: Check): Check {
  return (value, member) => {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      mustBe(member, value, "an object");
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [
        key,
        check(each, `${member}[${JSON.stringify(key)}]`),
      ]),
    );
  };
}

/** A dtype alone is short for `{ dtype }`. */
function modulePrecision(value: unknown, member: string): ModulePrecision {
  if (typeof value !== "object" || value === null)
    return { dtype: castDType(value, member) as CastDType };
  const { dtype, policies, ...others } = value as Record<string, unknown>;
  const [other] = Object.keys(others);
  if (other !== undefined)
    throw new RecipeError(`${member} has no ${JSON.stringify(other)}: it has dtype and policies`);
  return {
    ...(dtype !== undefined && { dtype: castDType(dtype, `${member}.dtype`) as CastDType }),
    ...(policies !== undefined && {
      policies: checks.policies(policies, `${member}.policies`) as NonNullable<
        ModulePrecision["policies"]
      >,
    }),
  };
}
