import { Tensor } from "@halfstep/tensor";

/** A tensor among arguments or results, with the name of the member that holds it. */
export interface NamedTensor {
  readonly name: string;
  readonly tensor: Tensor;
}

/** Whether a value is a tensor. */
export const isTensor = (value: unknown): value is Tensor => value instanceof Tensor;

/**
 * The tensors in a value, in order: the value itself, or those in nested arrays and plain objects. They have the names of members, or
 * their places in a list.
 */
export function namedTensors(value: unknown, name = ""): readonly NamedTensor[] {
  if (isTensor(value)) return [{ name, tensor: value }];
  return membersOf(value).flatMap(([key, member]) => namedTensors(member, key));
}

/** The value with each of its tensors replaced. */
export function mapTensors(value: unknown, replace: (tensor: Tensor) => Tensor): unknown {
  if (isTensor(value)) return replace(value);
  const members = membersOf(value).map(([key, member]) => [key, mapTensors(member, replace)]);
  if (Array.isArray(value)) return members.map(([, member]) => member);
  return members.length === 0 ? value : Object.fromEntries(members);
}

function membersOf(value: unknown): readonly (readonly [string, unknown])[] {
  if (Array.isArray(value)) return value.map((member, i) => [String(i), member]);
  const isPlain =
    typeof value === "object" &&
    value !== null &&
    Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? Object.entries(value) : [];
}
