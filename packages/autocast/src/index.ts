export { DTypeError, RecipeError } from "./errors.js";
export type {
  AutocastDType,
  BannedPolicy,
  CastDType,
  CastPolicies,
  CastPolicy,
} from "./policy.js";
export { type ApexLevel, type ApexOverrides, apexRecipe } from "./recipes/apex.js";
export { jmpRecipe, type Policy, parsePolicy, policyText } from "./recipes/jmp.js";
export { type KerasPolicy, type KerasPolicyMap, kerasRecipe } from "./recipes/keras.js";
export {
  type ModulePrecision,
  modulePrecisionOf,
  type Recipe,
  wholeRegion,
  withRecipe,
} from "./recipes/recipe.js";
export { autocastRecipe, recipeOf } from "./recipes/recipe-of.js";
export {
  type AutocastDecorator,
  type AutocastOptions,
  type AutocastRegion,
  autocast,
  currentRegion,
  type DisabledRegion,
  type EnabledRegion,
  type Synchronous,
  withoutAutocast,
} from "./region.js";
export { policyOf, resolveCast } from "./resolve.js";
export { torchCastPolicies } from "./torch.js";
