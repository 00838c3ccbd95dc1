import {
  type AutocastOptions,
  autocast,
  type CastDType,
  modulePrecisionOf,
  type Recipe,
  wholeRegion,
} from "@halfstep/autocast";
import { castAll } from "@halfstep/tensor/functional";
import { requireArguments } from "./arguments.js";
import { interceptForward } from "./intercept.js";
import type { Module, StoredVariable } from "./module.js";
import { nearestName } from "./nearest-name.js";

interface Applied {
  readonly recipe: Recipe;
  readonly undo: () => void;
}

const applied = new WeakMap<Module, Applied>();

/**
 * Applies a recipe to a model: its parameters are stored in the recipe's dtypes, and its `forward` casts inputs and results
 * and opens the regions of the recipe, for training, evaluation and inference. Recipes that cast op by op get their region
 * from `withRecipe`, which also covers the loss. A second recipe replaces the first.
 *
 * The parameters become new variables where their dtype changes, so call it outside steps and before the optimizer is made.
 *
 * Each pattern of `recipe.modules` has to match a module of this model, with wildcards too: an exception that holds nowhere is a misspelt
 * one. A recipe for several models names what they all have.
 *
 * ```ts
 * const recipe = recipeOf("O2");
 * applyRecipe(model, recipe);
 * const groups = flattenByDType(model.parameters()).map((params) => ({ params }));
 * const optimizer = new AdamW(runtime.target, groups, { storage: "master" });
 * const loss = withRecipe(recipe, () => crossEntropy(model.forward(x), labels));
 * ```
 *
 * @throws TypeError for what is no module or no recipe, and for a pattern that matches no module.
 */
export function applyRecipe<M extends Module>(model: M, recipe: Recipe): M {
  requireArguments("applyRecipe(model, recipe)", model, recipe);
  requireMatches(model, recipe);
  applied.get(model)?.undo();
  applied.delete(model);
  model.store((variable) => storedDType(recipe, variable));
  applied.set(model, { recipe, undo: interceptForRecipe(model, recipe) });
  return model;
}

/** Calls `fn` while the model runs by another recipe than the applied one; its parameters do not change. */
export function whileUnder<T>(model: Module, recipe: Recipe, fn: () => T): T {
  requireMatches(model, recipe);
  const before = applied.get(model);
  before?.undo();
  const undo = interceptForRecipe(model, recipe);
  try {
    return fn();
  } finally {
    undo();
    if (before) applied.set(model, { ...before, undo: interceptForRecipe(model, before.recipe) });
  }
}

/** Throws a TypeError where an exception of the recipe matches no module of the model. */
export function requireMatches(model: Module, recipe: Recipe): void {
  const patterns = Object.entries(recipe.modules);
  if (patterns.length === 0) return;
  const paths = [...model.namedModules()].map(([path]) => path);
  for (const [pattern, precision] of patterns) {
    const alone = { ...recipe, modules: { [pattern]: precision } };
    if (paths.some((path) => modulePrecisionOf(alone, path))) continue;
    const nearest = nearestName(pattern, paths);
    throw new TypeError(
      `the recipe has an exception for "${pattern}", which no module of ${model.constructor.name} matches: ${nearest === undefined ? `it has ${paths.slice(1, 1 + mostShown).join(", ")}` : `the nearest is "${nearest}"`}`,
    );
  }
}

/** Modules that a message lists: a model has hundreds. */
const mostShown = 6;

/** The dtype that a recipe stores a variable in. */
export function storedDType(recipe: Recipe, { path, module, isBuffer }: StoredVariable): CastDType {
  if (module.keepsFloat32 && (isBuffer || recipe.keepBatchNormFloat32)) return "float32";
  if (recipe.params === "float32") return "float32";
  return modulePrecisionOf(recipe, path)?.dtype ?? recipe.params;
}

/** Puts the recipe's casts and regions around `forward` of the model and of its exceptions. Returns how to undo it. */
function interceptForRecipe(model: Module, recipe: Recipe): () => void {
  const undo: (() => void)[] = [];
  const { casting, compute, output, policies } = recipe;
  if (casting === "whole" || output)
    undo.push(
      interceptForward(model, (forward, inputs) => {
        const whole = casting === "whole";
        const given = whole ? castAll(inputs, compute) : inputs;
        const run = (): unknown => forward(...given);
        const result = whole ? autocast(wholeRegion(compute, policies), run as () => never) : run();
        return output ? castAll(result, output) : result;
      }),
    );
  const parts = new Map(model.namedModules());
  for (const [path, module] of parts) {
    const precision = modulePrecisionOf(recipe, path);
    const isInside =
      path !== "" &&
      modulePrecisionOf(recipe, path.split(".").slice(0, -1).join(".")) === precision;
    if (!precision || isInside) continue;
    const region = regionOf(recipe, precision);
    undo.push(
      interceptForward(module, (forward, inputs) =>
        autocast(region, (() => forward(...inputs)) as () => never),
      ),
    );
  }
  return () => {
    for (const each of undo.reverse()) each();
  };
}

function regionOf(
  { compute, policies: everywhere }: Recipe,
  { dtype, policies }: NonNullable<ReturnType<typeof modulePrecisionOf>>,
): AutocastOptions {
  if (dtype) return wholeRegion(dtype, { ...everywhere, ...policies });
  return compute === "float32"
    ? { enabled: false, policies: policies ?? {} }
    : { dtype: compute, policies: policies ?? {} };
}
