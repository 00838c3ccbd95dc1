import type { Runtime } from "@halfstep/tensor";
import { naming, OnnxError } from "../errors.js";
import { requireKnown } from "../known-options.js";
import type { ExternalFiles } from "./external-data.js";
import { OnnxModel } from "./onnx-model.js";
import { operators } from "./operators.js";
import { readGraph } from "./read-graph.js";

/** Options of {@link fromOnnx}. */
export interface FromOnnxOptions {
  /** The file's name, which errors begin with. */
  readonly source?: string | undefined;
  /** Opens files beside the model, in which tensors may lie. Default: none, and such tensors are refused. */
  readonly external?: ExternalFiles | undefined;
}

/**
 * Reads an ONNX file as a module. The file is not trusted: lengths are compared with the bytes that are there, and nothing in it is
 * executed. `openOnnx()` of `@halfstep/onnx/node` reads a file by its path, and files beside it.
 *
 * @throws OnnxError that names every operator that is not supported, or what is wrong with the file
 * @example
 * const model = fromOnnx(runtime, await readFile("model.onnx"));
 * const { logits } = model.forward({ input_ids: tokens });
 */
export function fromOnnx(
  runtime: Runtime,
  bytes: Uint8Array,
  options: FromOnnxOptions = {},
): OnnxModel {
  requireKnown("fromOnnx", options, ["source", "external"]);
  const { source, external } = options;
  return naming(source, () => {
    const graph = readGraph(bytes, external);
    const unsupported = [...new Set(graph.nodes.map(({ operator }) => operator))].filter(
      (operator) => !(operator in operators),
    );
    if (unsupported.length > 0)
      throw new OnnxError(
        "unsupported",
        `the graph has operators that are not supported: ${unsupported.sort().join(", ")}: export the model without them`,
        unsupported,
      );
    return new OnnxModel(runtime, graph, source);
  });
}
