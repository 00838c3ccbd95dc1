import { expect, test } from "vitest";
import { planProduct } from "./shape.js";

const partsOf = (
  [m, n, k, batch = 1]: readonly [number, number, number, number?],
  hardwareClass?: string,
): number => planProduct(m, n, k, batch, { hardwareClass }).splits;

test.each([
  // Parts of large blocks, if they are deep enough.
  [[768, 768, 8192], 3],
  // Then parts of medium blocks, no less deep.
  [[256, 256, 16_384], 6],
  [[512, 512, 2048], 2],
  [[512, 512, 1024], 1],
  // Enough blocks.
  [[2048, 2048, 65_536], 1],
  [[768, 768, 4096, 12], 1],
  // Small products are computed by rows, and divided as everywhere.
  [[16, 64, 4096], 8],
] as const)("a GPU divides %j into %i parts of k", (shape, parts) => {
  expect(partsOf(shape, "a GPU")).toBe(parts);
});

test("adapters that are CPUs, and unknown hardware, divide by tiles", () => {
  for (const shape of [
    [768, 768, 8192],
    [256, 256, 16_384],
    [64, 64, 4096],
  ] as const) {
    const tiles = (Math.ceil(shape[0] / 32) * shape[1]) / 32;
    expect(partsOf(shape)).toBe(tiles >= 64 ? 1 : 8);
    expect(partsOf(shape, "software")).toBe(partsOf(shape));
  }
});
