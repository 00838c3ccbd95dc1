import { fromBinary } from "@bufbuild/protobuf";
import { OnnxError } from "../errors.js";
import { type ModelProto, ModelProtoSchema, type ValueInfoProto } from "../schema/onnx_pb.js";
import type { ExternalFiles } from "./external-data.js";
import type { GraphNode } from "./graph-node.js";
import { GraphReader, isOnnx, unsupportedPart } from "./graph-reader.js";
import type { HostTensor } from "./host-tensor.js";
import { requireFewMessages } from "./message-count.js";

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
 * @param files those beside the model *
 * @throws OnnxError
 */
export function readGraph(bytes: Uint8Array, files?: ExternalFiles): OnnxGraph {
  const model = parsed(bytes);
  const { graph } = model;
  if (!graph || graph.node.length === 0)
    throw new OnnxError("malformed", "the file has no graph: give an ONNX model");
  const opset = opsetOf(model);
  if (model.functions.length > 0) throw unsupportedPart(`functions (${model.functions[0]?.name})`);
  const reader = new GraphReader(files);
  reader.begin(graph);
  const inputs = graph.input.filter(({ name }) => !reader.constants.has(name)).map(inputOf);
  reader.read(graph);
  const { nodes, constants } = reader;
  return { opset, nodes, constants, inputs, outputs: graph.output.map(({ name }) => name) };
}

function parsed(bytes: Uint8Array): ModelProto {
  try {
    requireFewMessages(ModelProtoSchema, bytes);
    return fromBinary(ModelProtoSchema, bytes, { readUnknownFields: false });
  } catch (cause) {
    if (cause instanceof OnnxError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new OnnxError(
      "malformed",
      `the file is no ONNX model, or was cut off (${reason}): copy the whole file`,
    );
  }
}

function opsetOf({ opsetImport }: ModelProto): number {
  const foreign = opsetImport.find(({ domain }) => domain !== "" && domain !== "ai.onnx");
  const own = opsetImport.find((each) => each !== foreign && isOnnx(each.domain));
  const version = Number(own?.version ?? 0);
  if (!(version >= opsets.first && version <= opsets.last))
    throw new OnnxError(
      "unsupported",
      `the graph has opset ${version}: opsets ${opsets.first} to ${opsets.last} are read: convert the model by onnx.version_converter`,
    );
  return version;
}

function inputOf({ name, type }: ValueInfoProto): GraphInput {
  if (type?.value.case !== "tensorType")
    throw new OnnxError(
      "unsupported",
      `input "${name}" is no tensor: export the model with tensors alone`,
    );
  const { elemType, shape } = type.value.value;
  return {
    name,
    type: elemType,
    shape: shape?.dim.map(({ value }) =>
      value.case === "dimValue" ? Number(value.value) : (value.value ?? "?"),
    ),
  };
}
