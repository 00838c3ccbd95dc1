import type { Machine } from "../results.js";

/** Sentences on how a machine multiplies matrices, the last a warning where a GPU should do so in hardware and does not. */
export function productLines({ products }: Pick<Machine, "products">): readonly string[] {
  if (!products) return [];
  const { float16, float32, warning } = products;
  return [
    `Products of float16: ${float16}. Products of float32: ${float32}.`,
    ...(warning ? [`Warning: ${warning}.`] : []),
  ];
}
