import type { Tensor } from "../tensor/tensor.js";
import { isTensor } from "./is-tensor.js";

/** The tensors in a result: the result itself, or those in nested arrays, maps and plain objects. */
export function tensorsIn(value: unknown): readonly Tensor[] {
  const tensors: Tensor[] = [];
  collectTensors(value, tensors);
  return tensors;
}

function collectTensors(value: unknown, into: Tensor[]): void {
  if (typeof value !== "object" || value === null) return;
  if (isTensor(value)) into.push(value);
  else if (Array.isArray(value)) for (const item of value) collectTensors(item, into);
  else if (value instanceof Map) for (const item of value.values()) collectTensors(item, into);
  else if (Object.getPrototypeOf(value) === Object.prototype)
    for (const item of Object.values(value)) collectTensors(item, into);
}

/** The value with each tensor replaced: the value itself, or those in nested arrays and plain objects. */
export function mapTensors(value: unknown, replace: (x: Tensor) => Tensor): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (isTensor(value)) return replace(value);
  if (Array.isArray(value)) return value.map((item) => mapTensors(item, replace));
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  const mapped: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) mapped[key] = mapTensors(item, replace);
  return mapped;
}
