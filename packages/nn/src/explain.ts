import { type CastPolicy, modulePrecisionOf, type Recipe, withRecipe } from "@halfstep/autocast";
import { isFloating } from "@halfstep/formats/dtypes";
import {
  type CastDecision,
  noGrad,
  type OpTrace,
  type Tensor,
  traceOps,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireArguments } from "./arguments.js";
import type { Module } from "./module.js";
import { requireMatches, storedDType, whileUnder } from "./recipe.js";

/** One op of a model's forward pass under a recipe. */
export interface ExplainedOp {
  /** Dotted path of the module that applied it; "" is the model itself. */
  readonly path: string;
  readonly op: string;
  /** Dtypes of the arguments, parameters as the recipe stores them. */
  readonly inputs: readonly string[];
  /** The dtype that the op runs in. */
  readonly runsIn: string;
  readonly why: string;
}

/**
 * A table of the ops of a model's forward pass with the dtype in which each runs under a recipe, and the reason. Nothing
 * is computed, and the model does not change. The recipe need not be applied to the model.
 *
 * @param inputs what `forward` takes; where they are left out, the model's `exampleInputs()`. A model without either is
 *   explained module by module.
 * @example
 * console.log(explain(recipeOf("O2"), new DigitsCnn(runtime, { seed: 0 })));
 */
export function explain(recipe: Recipe, model: Module, ...inputs: readonly unknown[]): string {
  requireArguments("explain(recipe, model)", recipe, model);
  requireMatches(model, recipe);
  const isRunnable = inputs.length > 0 || model.exampleInputs !== undefined;
  const names = new Map(
    [...model.namedModules()].map(([path, module]) => [path, labelOf(path, module)]),
  );
  const rows = isRunnable
    ? explainOps(recipe, model, ...inputs).map(({ path, op, inputs: dtypes, runsIn, why }) => [
        names.get(path) ?? path,
        op,
        dtypes.join(", "),
        runsIn,
        why,
      ])
    : modulesUnder(recipe, model);
  const head = isRunnable
    ? ["module", "op", "arguments", "runs in", "why"]
    : ["module", "parameters", "ops"];
  return [summaryOf(recipe), "", ...aligned([head, ...rows])].join("\n");
}

/** The rows of {@link explain} as data. */
export function explainOps(
  recipe: Recipe,
  model: Module,
  ...inputs: readonly unknown[]
): readonly ExplainedOp[] {
  requireArguments("explainOps(recipe, model)", recipe, model);
  const stored = storedDTypes(recipe, model);
  const [parameter] = stored.keys();
  if (!parameter) throw new TypeError("explain() needs a model with parameters: this one has none");
  const ops: ExplainedOp[] = [];
  const record = (trace: OpTrace): void => {
    ops.push({
      path: trace.module,
      op: trace.op,
      inputs: trace.inputs.map((input) => stored.get(input) ?? input.dtype),
      runsIn: trace.cast.find(isFloating) ?? (trace.outputs[0] as string),
      why: castReason(recipe, trace, trace),
    });
  };
  const forward = (): unknown => {
    const given = inputs.length > 0 ? inputs : (model.exampleInputs?.() ?? []);
    return withRecipe(recipe, (() => model.forward(...(given as never[]))) as () => never);
  };
  whileUnder(model, recipe, () =>
    parameter.runtime.dryRun(() => void traceOps(record, () => noGrad(forward))),
  );
  return ops;
}

/** The dtype in which the recipe stores each parameter and buffer. */
function storedDTypes(recipe: Recipe, model: Module): Map<Tensor, string> {
  const modules = new Map(model.namedModules());
  const stored = new Map<Tensor, string>();
  const note = (path: string, variable: Variable, isBuffer: boolean): void => {
    let owner = path;
    while (!modules.has(owner) && owner !== "") owner = parentOf(owner);
    const module = modules.get(owner) as Module;
    stored.set(variable, storedDType(recipe, { path: owner, module, isBuffer }));
  };
  for (const [path, variable] of model.namedParameters()) note(path, variable, false);
  for (const [path, variable] of model.namedBuffers()) note(path, variable, true);
  return stored;
}

const ownReasons: Readonly<Record<Exclude<CastPolicy, object>, string>> = {
  lowerPrecision: "products and convolutions are lowered",
  float32: "needs float32's range or digits",
  float32Output: "its result is float32 unless a dtype is asked for",
  promote: "takes the widest of its arguments",
  none: "runs as its arguments are",
};

/** An op in its module, as traces and the notes of plans name it. */
interface PlacedOp {
  readonly op: string;
  readonly module: string;
  /** The op whose gradient this one is part of. */
  readonly backwardOf?: string;
}

/** Why an op runs in its dtype under a recipe, in words: of `traceOps()`, or of a launch of `runtime.plan()`. */
export function castReason(
  recipe: Recipe,
  { op, module, backwardOf }: PlacedOp,
  { policy, region }: CastDecision,
): string {
  if (backwardOf !== undefined) return "gradients have the dtype of their values";
  if (!region?.enabled) return "nothing is cast";
  const overrides = Object.hasOwn(region.policies, op) || Object.hasOwn(region.policies, "*");
  const exception = modulePrecisionOf(recipe, module);
  if (overrides && exception)
    return `exception for this module: ${exception.dtype ?? describe(policy)}`;
  if (Object.hasOwn(recipe.policies, op)) return `the recipe's policy: ${describe(policy)}`;
  if (typeof policy === "object") return describe(policy);
  if (!overrides || policy === "none") return ownReasons[policy];
  return `the whole model runs in ${recipe.compute}`;
}

const describe = (policy: CastPolicy): string =>
  typeof policy === "object" ? `banned: ${policy.banned}` : policy;

function summaryOf(recipe: Recipe): string {
  const { name, params, compute, casting, output, lossScale } = recipe;
  const batchNorm =
    params === "float32" ? "" : ` (batch norm ${recipe.keepBatchNormFloat32 ? "float32" : params})`;
  const ops =
    compute === "float32"
      ? "ops float32"
      : `${casting === "whole" ? "all ops" : "ops by their policies in"} ${compute}`;
  return [
    `${name}: parameters ${params}${batchNorm}`,
    ops,
    ...(output ? [`results ${output}`] : []),
    ...(recipe.masterWeights ? ["float32 masters"] : []),
    lossScale === 1 ? "no loss scaling" : `loss scale ${lossScale}`,
  ].join(", ");
}

/** A row for each module with parameters: the information that is available without running the model. */
function modulesUnder(recipe: Recipe, model: Module): readonly (readonly string[])[] {
  const { compute, casting } = recipe;
  return [...model.namedModules()].flatMap(([path, module]) => {
    const own = [...module.namedParameters()].filter(([name]) => !name.includes("."));
    if (own.length === 0) return [];
    const dtype = modulePrecisionOf(recipe, path)?.dtype;
    const ops =
      dtype ?? (compute === "float32" || casting === "whole" ? compute : `by policy, ${compute}`);
    return [[labelOf(path, module), storedDType(recipe, { path, module, isBuffer: false }), ops]];
  });
}

const labelOf = (path: string, module: Module): string =>
  path === "" ? module.constructor.name : `${path} (${module.constructor.name})`;

const parentOf = (path: string): string => path.split(".").slice(0, -1).join(".");

/** Rows of cells, padded to columns. */
function aligned(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] as number))
      .join("  ")
      .trimEnd(),
  );
}
