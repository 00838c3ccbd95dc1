import { DTypeError } from "@halfstep/autocast";
import { buffer, Module, ModuleDict, parameter } from "@halfstep/nn";
import { ArgumentError, type Runtime, ShapeError, Tensor, type Variable } from "@halfstep/tensor";
import { dataType } from "../data-type.js";
import { naming, OnnxError } from "../errors.js";
import { Call, type OnnxValue } from "./call.js";
import { givenInputs } from "./given-inputs.js";
import type { GraphNode } from "./graph-node.js";
import type { HostTensor } from "./host-tensor.js";
import { keepingLayout } from "./layout.js";
import { layoutFree, operators } from "./operators.js";
import type { GraphInput, OnnxGraph } from "./read-graph.js";

/** One operator of a graph, with the weights that it takes. Recipes and explanations name it by its path, `nodes.NAME`. */
export class OnnxNode extends Module {
  readonly operator: string;
  /** By the place of the operand. */
  readonly weights: readonly (Variable | undefined)[];
  readonly #node: GraphNode;
  readonly #graph: { readonly opset: number; readonly runtime: Runtime };

  /** @internal Made by {@link OnnxModel}. */
  constructor(
    node: GraphNode,
    graph: { readonly opset: number; readonly runtime: Runtime },
    weights: readonly (Variable | undefined)[],
  ) {
    super();
    this.operator = node.operator;
    this.weights = weights;
    this.#node = node;
    this.#graph = graph;
  }

  /** Batch norm takes its parameters in float32. */
  override get keepsFloat32(): boolean {
    return this.operator === "BatchNormalization";
  }

  /** @param inputs the operands that are no weights; undefined ones are left out in the file */
  forward(inputs: readonly (OnnxValue | undefined)[]): readonly OnnxValue[] {
    const { operator } = this;
    const compute = operators[operator] as NonNullable<(typeof operators)[string]>;
    const all = inputs.map((input, place) => this.weights[place] ?? input);
    const call = new Call(this.#node, this.#graph, all);
    try {
      const result = (layoutFree.has(operator) ? keepingLayout(compute) : compute)(call);
      return Array.isArray(result) ? result : [result as OnnxValue];
    } catch (error) {
      throw isMisfit(error) ? call.misfit(error) : error;
    }
  }
}

/**
 * A graph of ONNX as a module. Its weights are parameters, so that recipes, `half()`, `explain()` and optimizers treat it like any other
 * model. Images are [batch, channels, height, width], as the graph has them.
 */
export class OnnxModel extends Module {
  /** The inputs of the graph. */
  readonly inputs: readonly GraphInput[];
  /** Names of the results. */
  readonly outputs: readonly string[];
  readonly nodes: ModuleDict<OnnxNode>;
  readonly #steps: readonly { readonly module: OnnxNode; readonly node: GraphNode }[];
  readonly #constants: ReadonlyMap<string, HostTensor>;
  readonly #weights: ReadonlyMap<string, Variable>;
  readonly #source: string | undefined;

  /** @internal Made by `fromOnnx()`. */
  constructor(runtime: Runtime, graph: OnnxGraph, source?: string) {
    super();
    this.#source = source;
    const { constants, opset } = graph;
    this.inputs = graph.inputs;
    this.outputs = graph.outputs;
    const weights = new Map<string, Variable>();
    const weightOf = (name: string, operator: string): Variable | undefined => {
      const constant = constants.get(name);
      if (!constant?.isFloat || constant.size < 2) return undefined;
      const known = weights.get(name);
      if (known) return known;
      const made = variableOf(runtime, name, constant, operator);
      weights.set(name, made);
      return made;
    };
    const names = new Set<string>();
    const modules: Record<string, OnnxNode> = {};
    this.#steps = graph.nodes.map((node) => {
      const own = node.inputs.map((input, place) =>
        isSetting(node.operator, place) ? undefined : weightOf(input, node.operator),
      );
      const module = new OnnxNode(node, { opset, runtime }, own);
      modules[pathOf(node.name, names)] = module;
      return { module, node };
    });
    this.#weights = weights;
    // Weights are on the device now. The other constants are read while their files are open.
    this.#constants = new Map([...constants].filter(([name]) => !weights.has(name)));
    for (const { values } of this.#constants.values()) void values;
    this.nodes = new ModuleDict(modules);
  }

  /**
   * Computes the results from the inputs, both by name. Inputs of int64 and int32 are int32 or uint32 tensors, their results int32.
   *
   * @throws OnnxError where an input is missing, unknown or of another shape or type than in the graph, or an operator is used in a way that is
   *   not supported
   */
  forward(inputs: Readonly<Record<string, Tensor>>): Readonly<Record<string, Tensor>> {
    return naming(this.#source, () => this.run(inputs, (node, given) => node.forward(given)));
  }

  /** @internal The names of the nodes' modules. */
  get nodeNames(): ReadonlyMap<OnnxNode, string> {
    return new Map(this.nodes.keys().map((name) => [this.nodes.get(name), name]));
  }

  /** @internal {@link forward} with each operator computed by a function. */
  run(
    inputs: Readonly<Record<string, Tensor>>,
    compute: (node: OnnxNode, given: readonly (OnnxValue | undefined)[]) => readonly OnnxValue[],
  ): Readonly<Record<string, Tensor>> {
    const values = new Map<string, OnnxValue>([...this.#constants, ...this.#weights]);
    for (const [name, given] of givenInputs(this.inputs, inputs)) values.set(name, given);
    for (const { module, node } of this.#steps) {
      const given = node.inputs.map((name) => values.get(name));
      const results = compute(module, given);
      for (const [i, name] of node.outputs.entries()) {
        const result = results[i];
        if (name !== "" && result) values.set(name, result);
      }
    }
    return Object.fromEntries(this.outputs.map((name) => [name, tensorOf(values.get(name), name)]));
  }
}

/** Whether an operand is floating numbers that say how to compute, not what with: the scales of images. */
const isSetting = (operator: string, place: number): boolean => operator === "Resize" && place > 0;

/** Whether an op refused its operands, which are as the file or the caller made them. */
const isMisfit = (error: unknown): error is Error =>
  error instanceof ShapeError ||
  error instanceof DTypeError ||
  error instanceof ArgumentError ||
  error instanceof RangeError;

function tensorOf(value: OnnxValue | undefined, name: string): Tensor {
  if (value instanceof Tensor) return value;
  throw new OnnxError("unsupported", `the output "${name}" does not depend on numbers of an input`);
}

/** The name of a node among modules: paths have dots between names. */
function pathOf(name: string, taken: Set<string>): string {
  const plain = name.replace(/^\/+/, "").replaceAll(".", "/");
  const wanted =
    plain === "" || plain in ModuleDict.prototype || plain === "__proto__"
      ? `node ${plain}`
      : plain;
  let free = wanted;
  for (let n = 2; taken.has(free); n++) free = `${wanted}_${n}`;
  taken.add(free);
  return free;
}

const dtypes = {
  [dataType.FLOAT16]: "float16",
  [dataType.BFLOAT16]: "bfloat16",
} as const;

function variableOf(
  runtime: Runtime,
  name: string,
  { type, shape, values }: HostTensor,
  operator: string,
): Variable {
  const numbers = values instanceof Float32Array ? values : Float32Array.from(values);
  // Batch norm takes float32 in every precision.
  const isNorm = operator === "BatchNormalization";
  const made = (isNorm ? buffer : parameter)(runtime, numbers, shape, name);
  const dtype = dtypes[type as keyof typeof dtypes];
  if (!dtype || isNorm) return made;
  const stored = runtime.variable(numbers, shape, { dtype, name, requiresGrad: true });
  made.dispose();
  return stored;
}
