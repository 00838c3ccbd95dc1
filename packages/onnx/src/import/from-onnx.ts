import type { Runtime } from "@halfstep/tensor";
import { dataType } from "../data-type.js";
import { OnnxError } from "../errors.js";
import { HostTensor } from "./host-tensor.js";
import { OnnxModel } from "./onnx-model.js";
import { operators } from "./operators.js";
import { type GraphNode, type OnnxGraph, readGraph } from "./read-graph.js";

/**
 * Reads an ONNX file as a module. The file is not trusted: lengths are compared with the bytes that are there, and nothing in it is
 * executed.
 *
 * @throws OnnxError that names every operator that is not supported, or what is wrong with the file
 * @example
 * const model = fromOnnx(runtime, await readFile("model.onnx"));
 * const { logits } = model.forward({ input_ids: tokens });
 */
export function fromOnnx(runtime: Runtime, bytes: Uint8Array): OnnxModel {
  const graph = withConstants(readGraph(bytes));
  const unsupported = [...new Set(graph.nodes.map(({ operator }) => operator))].filter(
    (operator) => !(operator in operators),
  );
  if (unsupported.length > 0)
    throw new OnnxError(
      "unsupported",
      `the graph has operators that are not supported: ${unsupported.sort().join(", ")}`,
      unsupported,
    );
  return new OnnxModel(runtime, graph);
}

/** The graph with the results of its Constant nodes among the constants. */
function withConstants(graph: OnnxGraph): OnnxGraph {
  const constants = new Map(graph.constants);
  const nodes = graph.nodes.filter((node) => {
    if (node.operator !== "Constant") return true;
    const [name = ""] = node.outputs;
    constants.set(name, constantOf(node));
    return false;
  });
  return { ...graph, nodes, constants };
}

function constantOf({ name, attributes }: GraphNode): HostTensor {
  const [[kind, value] = []] = attributes;
  if (value instanceof HostTensor) return value;
  const isFloat = kind?.startsWith("value_float");
  const type = isFloat ? dataType.FLOAT : dataType.INT64;
  if (typeof value === "number") return new HostTensor(type, [], [value]);
  if (Array.isArray(value) && value.every((each) => typeof each === "number"))
    return new HostTensor(type, [value.length], value);
  throw new OnnxError("unsupported", `Constant ${name} has ${kind ?? "no value"}`, ["Constant"]);
}
