import { attributeType } from "../attributes.js";
import { dataType } from "../data-type.js";
import { OnnxError } from "../errors.js";
import type { AttributeProto, GraphProto, NodeProto } from "../schema/onnx_pb.js";
import type { ExternalFiles } from "./external-data.js";
import type { AttributeValue, GraphNode } from "./graph-node.js";
import { HostTensor } from "./host-tensor.js";
import { readTensor } from "./read-tensor.js";

/** The names of values in a graph, and those of the graph around it. */
interface Scope {
  /** What they are called among the nodes of the file, by their names in the graph. */
  readonly names: Map<string, string>;
  readonly outer?: Scope;
  /** The node whose branch the graph is. */
  readonly owner?: string;
}

const text = new TextDecoder();

/**
 * Collects the nodes and constants of a file. The branch of an If whose condition is a constant takes the node's place, with names of its
 * own; the other branch is not read.
 */
export class GraphReader {
  readonly nodes: GraphNode[] = [];
  readonly constants: Map<string, HostTensor> = new Map();
  readonly #known = new Set<string>();
  /** Nodes through which a condition can be followed to a constant, by what they give. */
  readonly #passing = new Map<string, GraphNode>();
  readonly #top: Scope = { names: new Map() };
  readonly #files: ExternalFiles | undefined;

  /** @param files those beside the model */
  constructor(files?: ExternalFiles) {
    this.#files = files;
  }

  /** Notes the inputs and constants of a graph. */
  begin({ initializer, input, sparseInitializer }: GraphProto): void {
    if (sparseInitializer.length > 0) throw unsupportedPart("sparse tensors");
    this.#store(initializer, this.#top);
    for (const { name } of input)
      if (!this.constants.has(name) && !this.#known.has(name)) this.#define(name, this.#top);
  }

  /** Reads the nodes of the file's graph. @throws OnnxError unless each takes what is there before it, and each name is given once */
  read({ node, output }: GraphProto): void {
    this.#readNodes(node, this.#top);
    const lost = output.find(({ name }) => !this.#known.has(name));
    if (lost)
      throw new OnnxError(
        "malformed",
        `no node gives the output "${lost.name}": export the model again`,
      );
  }

  #readNodes(nodes: readonly NodeProto[], scope: Scope): void {
    for (const proto of nodes) this.#readNode(proto, scope);
  }

  #readNode(proto: NodeProto, scope: Scope): void {
    const { name, opType, domain } = proto;
    const operator = isOnnx(domain) ? opType : `${domain}.${opType}`;
    const own = name === "" ? `${opType}_${this.nodes.length}` : name;
    const shown = scope.owner === undefined ? own : `${scope.owner}/${own}`;
    const inputs = proto.input.map((each) => this.#resolved(each, shown, scope));
    if (operator === "If") {
      this.#inline(proto, shown, inputs, scope);
      return;
    }
    const node: GraphNode = {
      ...{ name: shown, operator, inputs },
      outputs: proto.output.map((each) => (each === "" ? "" : this.#define(each, scope))),
      attributes: this.#attributesOf(proto.attribute, shown, operator),
    };
    this.#add(node);
  }

  #add(node: GraphNode): void {
    const [output = ""] = node.outputs;
    const { operator } = node;
    if (operator === "Constant") {
      this.constants.set(output, constantOf(node));
      return;
    }
    if (operator === "Identity" || operator === "Not" || operator === "Cast")
      this.#passing.set(output, node);
    this.nodes.push(node);
  }

  /** Puts the branch that an If takes in its place. */
  #inline(proto: NodeProto, shown: string, inputs: readonly string[], scope: Scope): void {
    const taken = this.#condition(inputs[0] ?? "");
    if (taken === undefined)
      throw new OnnxError(
        "unsupported",
        `If ${shown}: its condition "${proto.input[0] ?? ""}" is no constant: export the model for inputs of fixed sizes, or without the branch`,
        ["If"],
      );
    const wanted = taken ? "then_branch" : "else_branch";
    const branch = proto.attribute.find(({ name }) => name === wanted)?.g;
    if (!branch || branch.output.length !== proto.output.length)
      throw new OnnxError(
        "malformed",
        `If ${shown}: its ${wanted} gives ${branch?.output.length ?? "no"} results of ${proto.output.length}: export the model again`,
      );
    if (branch.sparseInitializer.length > 0) throw unsupportedPart("sparse tensors");
    const inner: Scope = { names: new Map(), outer: scope, owner: shown };
    this.#store(branch.initializer, inner);
    this.#readNodes(branch.node, inner);
    for (const [place, { name }] of branch.output.entries()) {
      const given = this.#resolved(name, shown, inner);
      const output = proto.output[place] as string;
      if (output === "") continue;
      this.#add({
        ...{ name: `${shown}/${output}`, operator: "Identity", inputs: [given] },
        ...{ outputs: [this.#define(output, scope)], attributes: new Map() },
      });
    }
  }

  /** What a condition is; undefined where inputs decide. */
  #condition(name: string): boolean | undefined {
    let isTurned = false;
    for (let at = name; ; ) {
      const constant = this.constants.get(at);
      if (constant)
        return constant.values.length === 1 ? (constant.values[0] !== 0) !== isTurned : undefined;
      const node = this.#passing.get(at);
      if (!node) return undefined;
      if (node.operator === "Not") isTurned = !isTurned;
      at = node.inputs[0] ?? "";
    }
  }

  /** The attributes of a node. Graphs of operators that are not supported are left out, so that all such operators are named at once. */
  #attributesOf(
    attributes: readonly AttributeProto[],
    node: string,
    operator: string,
  ): ReadonlyMap<string, AttributeValue> {
    const hasGraph = attributes.some(({ type }) => type === attributeType.GRAPH);
    if (hasGraph && (operator === "Loop" || operator === "Scan")) return new Map();
    return new Map(attributes.map((each) => [each.name, this.#attribute(each, node)]));
  }

  #attribute({ name, type, t, ...values }: AttributeProto, node: string): AttributeValue {
    if (type === attributeType.TENSOR && t)
      return readTensor(t, `attribute ${name} of ${node}`, this.#files);
    const value = attributeValue(type, values);
    if (value !== undefined) return value;
    throw new OnnxError(
      "unsupported",
      `attribute ${name} of ${node} has type ${type}: of graphs within graphs, only the branches of If are read: export the model without it`,
    );
  }

  #store(initializer: GraphProto["initializer"], scope: Scope): void {
    for (const tensor of initializer)
      this.constants.set(
        this.#define(tensor.name, scope),
        readTensor(tensor, `tensor "${tensor.name}"`, this.#files),
      );
  }

  /** A new value of a graph. */
  #define(name: string, scope: Scope): string {
    if (scope.names.has(name)) throw twice(name);
    let made = name;
    if (scope.owner !== undefined) {
      made = `${scope.owner}/${name}`;
      for (let n = 2; this.#known.has(made); n++) made = `${scope.owner}/${name}_${n}`;
    }
    if (this.#known.has(made)) throw twice(name);
    this.#known.add(made);
    scope.names.set(name, made);
    return made;
  }

  /** What a name means in a graph. */
  #resolved(name: string, node: string, scope: Scope): string {
    if (name === "") return "";
    for (let each: Scope | undefined = scope; each; each = each.outer) {
      const found = each.names.get(name);
      if (found !== undefined) return found;
    }
    throw new OnnxError(
      "malformed",
      `${node} takes "${name}", which no node before it gives: export the model again`,
    );
  }
}

/** Whether a domain is that of ONNX's own operators. */
export const isOnnx = (domain: string): boolean => domain === "" || domain === "ai.onnx";

/** The error of parts of a file that are not read. */
export const unsupportedPart = (what: string): OnnxError =>
  new OnnxError(
    "unsupported",
    `the file has ${what}, which are not read: export the model without them`,
  );

const twice = (name: string): OnnxError =>
  new OnnxError("malformed", `"${name}" is the name of two values: export the model again`);

/** What an attribute is that is no tensor; undefined for types that are not read. */
function attributeValue(
  type: number,
  {
    f,
    i,
    s,
    floats,
    ints,
    strings,
  }: Pick<AttributeProto, "f" | "i" | "s" | "floats" | "ints" | "strings">,
): AttributeValue | undefined {
  switch (type) {
    case attributeType.FLOAT:
      return f;
    case attributeType.INT:
      return Number(i);
    case attributeType.STRING:
      return text.decode(s);
    case attributeType.FLOATS:
      return floats;
    case attributeType.INTS:
      return ints.map(Number);
    case attributeType.STRINGS:
      return strings.map((each) => text.decode(each));
    default:
      return undefined;
  }
}

/** The numbers of a Constant node. */
function constantOf({ name, attributes }: GraphNode): HostTensor {
  const [[kind, value] = []] = attributes;
  if (value instanceof HostTensor) return value;
  const isFloat = kind?.startsWith("value_float");
  const type = isFloat ? dataType.FLOAT : dataType.INT64;
  if (typeof value === "number") return new HostTensor(type, [], [value]);
  if (Array.isArray(value) && value.every((each) => typeof each === "number"))
    return new HostTensor(type, [value.length], value);
  throw new OnnxError(
    "unsupported",
    `Constant ${name} has ${kind ?? "no value"}: export the model with constants of numbers`,
    ["Constant"],
  );
}
