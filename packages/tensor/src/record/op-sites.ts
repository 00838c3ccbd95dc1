import type { OpNote } from "./op-notes.js";
import type { RecordedTensor } from "./recorded-tensor.js";

/** The place in a model at which a number was computed. */
export interface OpSite {
  /**
   * The op that computed it. In a backward pass also the op whose gradient it is: "matmul in the backward of linear".
   */
  readonly op: string;
  /** The tensor that has it: a result of the op, or one of its arguments. */
  readonly tensor: string;
  /** Path of the module that applied the op; absent where none did. */
  readonly module?: string;
}

/** The site of a tensor of an op. */
export function siteOf(
  { op, scope }: OpNote,
  kind: "result" | "argument",
  tensor: RecordedTensor,
): OpSite {
  const module = scope?.path() ?? "";
  return {
    op: scope?.backwardOf ? `${op} in the backward of ${scope.backwardOf}` : op,
    tensor: `${kind} ${describe(tensor)}`,
    ...(module !== "" && { module }),
  };
}

function describe({ name, dtype, shape }: RecordedTensor): string {
  return `${name ? `${name}, ` : ""}${dtype} [${shape.join(", ")}]`;
}
