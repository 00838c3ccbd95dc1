import { autocast, type Recipe, recipeOf, wholeRegion, withoutAutocast } from "@halfstep/autocast";
import { isFloating } from "@halfstep/formats/dtypes";
import { castAll, isFiniteNumber, keepWhere, noGrad, stack, Tensor } from "@halfstep/tensor";
import { OnnxError } from "../errors.js";
import { requireKnown } from "../known-options.js";
import type { OnnxValue } from "./call.js";
import type { OnnxModel, OnnxNode } from "./onnx-model.js";

/** Options of {@link auditHalf}. */
export interface HalfAuditOptions {
  /** Default "float16". */
  readonly dtype?: "float16" | "bfloat16";
  /** The largest error of an operator and of the graph, in terms of the largest of its results. Default 0.01. */
  readonly tolerance?: number;
}

/** One operator of a graph, computed in half precision from the operands that it has in float32. */
export interface AuditedNode {
  /** The name of its module: a recipe names it `nodes.NAME`. */
  readonly name: string;
  readonly operator: string;
  /** The largest magnitude of its results in float32. */
  readonly largest: number;
  /** Results that are finite in float32 and not in half precision. */
  readonly lost: number;
  /** The largest error, in terms of the largest result; NaN where results are lost. */
  readonly error: number;
}

/** What half precision does to a graph. */
export interface HalfAudit {
  /** All operators with floating results, in order. */
  readonly nodes: readonly AuditedNode[];
  /**
   * The names of those that must stay float32: all that lose results or err more than the tolerance, if the graph's results do. Else
   * none.
   */
  readonly keep: readonly string[];
  /** The same as a recipe: `applyRecipe(model, recipe)` stores and computes all others in half precision. */
  readonly recipe: Recipe;
  readonly errors: Readonly<Record<string, ResultErrors>>;
}

/** The largest errors of a result of the graph, in terms of its largest number; NaN where finite results are lost. */
export interface ResultErrors {
  /** With all operators in half precision. */
  readonly all: number;
  /** With those in float32 that lose results or err more than the tolerance. */
  readonly kept: number;
}

type Values = readonly (OnnxValue | undefined)[];
type Compute = (node: OnnxNode, inputs: Values) => readonly OnnxValue[];

/**
 * Finds the operators of a graph that break in half precision, for given inputs. Each is computed twice from the same float32 operands, in
 * float32 and in half precision, and its results are compared. Then the whole graph is computed in half precision, once with these
 * operators in float32.
 *
 * @example
 * const { keep, recipe } = await auditHalf(model, { input_ids: tokens });
 * applyRecipe(model, recipe); // half inference
 */
export async function auditHalf(
  model: OnnxModel,
  inputs: Readonly<Record<string, Tensor>>,
  options: HalfAuditOptions = {},
): Promise<HalfAudit> {
  requireKnown("auditHalf", options, ["dtype", "tolerance"]);
  const { dtype = "float16", tolerance = 0.01 } = options;
  const [first] = Object.values(inputs);
  if (!first) throw new OnnxError("inputs", "auditHalf() needs the inputs of the graph");
  const { runtime } = first;
  const half: Compute = (node, given) => inRegion(dtype, () => node.forward(castAll(given, dtype)));
  const single: Compute = (node, given) =>
    inRegion("float32", () => node.forward(castAll(given, "float32")));
  const rows = await runtime.step(() =>
    noGrad(() => {
      const found: { readonly node: OnnxNode; readonly numbers: Tensor }[] = [];
      model.run(inputs, (node, given) => {
        const exact = single(node, given);
        const [wanted] = exact;
        if (!(wanted instanceof Tensor) || !isFloating(wanted.dtype)) return exact;
        const [rounded] = half(node, given) as readonly [Tensor];
        found.push({ node, numbers: comparison(wanted, rounded) });
        return exact;
      });
      return found;
    }),
  );
  const names = model.nodeNames;
  const nodes: AuditedNode[] = [];
  for (const { node, numbers } of rows) {
    const found = await read(numbers);
    const { largest, lost } = found;
    const name = names.get(node) as string;
    nodes.push({ name, operator: node.operator, largest, lost, error: errorOf(found) });
  }
  const suspects = nodes
    .filter(({ lost, error }) => lost > 0 || !(error <= tolerance))
    .map(({ name }) => name);
  const isKept = new Set(suspects);
  const run = (kept: ReadonlySet<string>): ReturnType<OnnxModel["run"]> =>
    model.run(inputs, (node, given) =>
      (kept.has(names.get(node) as string) ? single : half)(node, given),
    );
  const compared = await runtime.step(() =>
    noGrad(() => {
      const exact = model.run(inputs, single);
      const [all, kept] = [run(new Set()), run(isKept)];
      return Object.entries(exact).map(([name, wanted]) => ({
        name,
        all: comparison(wanted, all[name] as Tensor),
        kept: comparison(wanted, kept[name] as Tensor),
      }));
    }),
  );
  const errors: Record<string, ResultErrors> = {};
  for (const { name, all, kept } of compared)
    errors[name] = { all: errorOf(await read(all)), kept: errorOf(await read(kept)) };
  // Minus infinity in a mask is lost, too, and does no harm.
  const isHarmless = Object.values(errors).every(({ all }) => all <= tolerance);
  const keep = isHarmless ? [] : suspects;
  return { nodes, keep, recipe: recipeFor(dtype, keep), errors };
}

/** Everything inside in one dtype, where operators in float32 cast nothing that they are not given. */
const inRegion = (dtype: "float16" | "bfloat16" | "float32", fn: () => readonly OnnxValue[]) =>
  (dtype === "float32"
    ? withoutAutocast(fn as () => never)
    : autocast(wholeRegion(dtype), fn as () => never)) as readonly OnnxValue[];

interface Compared {
  readonly largest: number;
  readonly worst: number;
  readonly lost: number;
}

async function read(numbers: Tensor): Promise<Compared> {
  const [largest = 0, worst = 0, lost = 0] = await numbers.toArray();
  numbers.dispose();
  return { largest, worst, lost };
}

const errorOf = ({ largest, worst, lost }: Compared): number =>
  lost > 0 ? Number.NaN : worst === 0 ? 0 : worst / largest;

/** Everything in half precision, but for the operators that are kept. */
const recipeFor = (dtype: "float16" | "bfloat16", keep: readonly string[]): Recipe => ({
  ...recipeOf(`params=${dtype},compute=${dtype},output=float32`),
  modules: Object.fromEntries(keep.map((name) => [`nodes.${name}`, { dtype: "float32" }])),
});

/** The largest result, the largest error, and how many finite results were lost. */
function comparison(given: Tensor, other: Tensor): Tensor {
  const [wanted, found] = [given, other].map((x) => x.to("float32")) as [Tensor, Tensor];
  const [isWanted, isFound] = [isFiniteNumber(wanted), isFiniteNumber(found)];
  const lost = isWanted.sub(isFound).to("float32").mul(isWanted.to("float32"));
  const both = isWanted.mul(isFound);
  const [a, b] = [wanted, found].map((x) => keepWhere(x, both)) as [Tensor, Tensor];
  return stack([keepWhere(wanted, isWanted).abs().amax(), a.sub(b).abs().amax(), lost.sum()]);
}
