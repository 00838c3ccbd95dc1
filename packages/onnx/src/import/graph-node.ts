import type { HostTensor } from "./host-tensor.js";

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
