import { fromBinary } from "@bufbuild/protobuf";
import { attributeType } from "../attributes.js";
import { OnnxError } from "../errors.js";
import {
  type AttributeProto,
  type GraphProto,
  type ModelProto,
  ModelProtoSchema,
  type NodeProto,
  type ValueInfoProto,
} from "../schema/onnx_pb.js";
import type { HostTensor } from "./host-tensor.js";
import { readTensor } from "./read-tensor.js";

/** An attribute of a node: numbers, a text, texts, or a tensor. */
export type AttributeValue = number | readonly number[] | string | readonly string[] | HostTensor;

/** An operator with the names of what it takes and gives; "" is an operand that is left out. */
export interface GraphNode {
  readonly name: string;
  readonly operator: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: ReadonlyMap<string, AttributeValue>;
}

/** An input of a graph. */
export interface GraphInput {
  readonly name: string;
  readonly type: number;
  /** Sizes, or names of sizes; undefined where the file does not say it. */
  readonly shape: readonly (number | string)[] | undefined;
}

/** A graph as it lies in a file, with its nodes in an order in which they can run. */
export interface OnnxGraph {
  readonly opset: number;
  readonly nodes: readonly GraphNode[];
  readonly constants: ReadonlyMap<string, HostTensor>;
  readonly inputs: readonly GraphInput[];
  readonly outputs: readonly string[];
}

/** The versions of the operators that are read. */
const opsets = { first: 13, last: 21 };

/**
 * Reads a file. Nothing in it is trusted: lengths are compared with the bytes that are there, and names with each other.
 *
 * @throws OnnxError
 */
export function readGraph(bytes: Uint8Array): OnnxGraph {
  const model = parsed(bytes);
  const { graph } = model;
  if (!graph || graph.node.length === 0)
    throw new OnnxError("malformed", "the file has no graph: is it an ONNX model?");
  const opset = opsetOf(model);
  if (model.functions.length > 0) throw unsupportedPart(`functions (${model.functions[0]?.name})`);
  if (graph.sparseInitializer.length > 0) throw unsupportedPart("sparse tensors");
  const constants = new Map<string, HostTensor>();
  for (const tensor of graph.initializer) {
    if (constants.has(tensor.name)) throw twice(tensor.name);
    constants.set(tensor.name, readTensor(tensor, `tensor "${tensor.name}"`));
  }
  const nodes = graph.node.map(nodeOf);
  const inputs = graph.input.filter(({ name }) => !constants.has(name)).map(inputOf);
  const outputs = graph.output.map(({ name }) => name);
  requireOrder(graph, nodes, constants, inputs);
  return { opset, nodes, constants, inputs, outputs };
}

function parsed(bytes: Uint8Array): ModelProto {
  try {
    return fromBinary(ModelProtoSchema, bytes);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new OnnxError("malformed", `the file is no ONNX model: ${reason}`);
  }
}

function opsetOf({ opsetImport }: ModelProto): number {
  const foreign = opsetImport.find(({ domain }) => domain !== "" && domain !== "ai.onnx");
  const own = opsetImport.find((each) => each !== foreign && isOnnx(each.domain));
  const version = Number(own?.version ?? 0);
  if (!(version >= opsets.first && version <= opsets.last))
    throw new OnnxError(
      "unsupported",
      `the graph has opset ${version}: opsets ${opsets.first} to ${opsets.last} are read`,
    );
  return version;
}

const isOnnx = (domain: string): boolean => domain === "" || domain === "ai.onnx";

const unsupportedPart = (what: string): OnnxError =>
  new OnnxError("unsupported", `the file has ${what}, which are not read`);

const twice = (name: string): OnnxError =>
  new OnnxError("malformed", `"${name}" is the name of two values`);

function nodeOf(
  { name, opType, domain, input, output, attribute }: NodeProto,
  place: number,
): GraphNode {
  const operator = isOnnx(domain) ? opType : `${domain}.${opType}`;
  const shown = name === "" ? `${opType}_${place}` : name;
  return {
    name: shown,
    operator,
    inputs: input,
    outputs: output,
    attributes: new Map(attribute.map((each) => [each.name, attributeValue(each, shown)])),
  };
}

const text = new TextDecoder();

function attributeValue(attribute: AttributeProto, node: string): AttributeValue {
  switch (attribute.type) {
    case attributeType.FLOAT:
      return attribute.f;
    case attributeType.INT:
      return Number(attribute.i);
    case attributeType.STRING:
      return text.decode(attribute.s);
    case attributeType.TENSOR:
      if (attribute.t) return readTensor(attribute.t, `attribute ${attribute.name} of ${node}`);
      break;
    case attributeType.FLOATS:
      return attribute.floats;
    case attributeType.INTS:
      return attribute.ints.map(Number);
    case attributeType.STRINGS:
      return attribute.strings.map((each) => text.decode(each));
  }
  throw new OnnxError(
    "unsupported",
    `attribute ${attribute.name} of ${node} has type ${attribute.type}: graphs within graphs are not read`,
  );
}

function inputOf({ name, type }: ValueInfoProto): GraphInput {
  if (type?.value.case !== "tensorType")
    throw new OnnxError("unsupported", `input "${name}" is no tensor`);
  const { elemType, shape } = type.value.value;
  return {
    name,
    type: elemType,
    shape: shape?.dim.map(({ value }) =>
      value.case === "dimValue" ? Number(value.value) : (value.value ?? "?"),
    ),
  };
}

/** Throws unless each node takes what is there before it, and each name is given once. */
function requireOrder(
  graph: GraphProto,
  nodes: readonly GraphNode[],
  constants: ReadonlyMap<string, HostTensor>,
  inputs: readonly GraphInput[],
): void {
  const known = new Set([...constants.keys(), ...inputs.map(({ name }) => name)]);
  for (const { name, inputs: taken, outputs } of nodes) {
    const missing = taken.find((each) => each !== "" && !known.has(each));
    if (missing !== undefined)
      throw new OnnxError("malformed", `${name} takes "${missing}", which no node before it gives`);
    for (const output of outputs) {
      if (output === "") continue;
      if (known.has(output)) throw twice(output);
      known.add(output);
    }
  }
  const lost = graph.output.find(({ name }) => !known.has(name));
  if (lost) throw new OnnxError("malformed", `no node gives the output "${lost.name}"`);
}
