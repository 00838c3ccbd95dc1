import { isTensor } from "./is-tensor.js";

/** Whether a value is an object that may hold options. */
export const isOptions = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isTensor(value);
