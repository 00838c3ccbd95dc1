import type { Tensor } from "../tensor/tensor.js";
import type { OpNote } from "./op-notes.js";

/** Where in a model a number was made. */
export interface OpSite {
  /** The op that made it. In a backward pass also the op whose gradient that is: "matmul in the backward of linear". */
  readonly op: string;
  /** The tensor that holds it: a result of the op, or an argument that it was given. */
  readonly tensor: string;
  /** Path of the module that applied the op; absent where none did. */
  readonly module?: string;
}

/** The site of a tensor of an op. */
export function siteOf({ op, scope }: OpNote, kind: "result" | "argument", tensor: Tensor): OpSite {
  const module = scope?.path() ?? "";
  return {
    op: scope?.backwardOf ? `${op} in the backward of ${scope.backwardOf}` : op,
    tensor: `${kind} ${describe(tensor)}`,
    ...(module !== "" && { module }),
  };
}

function describe(tensor: Tensor): string {
  const { name } = tensor as { readonly name?: string };
  return `${name ? `${name}, ` : ""}${tensor.dtype} [${tensor.shape.join(", ")}]`;
}
