import type { FactorQuads } from "../matmul/block.js";

/** A factor by blocks, and the functions that its loads call. */
export interface BlockFactor {
  readonly functions: string;
  readonly quads: FactorQuads;
}

/**
 * The right factor of a product, of which row k has the columns of all groups: an HWIO weight, or the gradient by the output. Needs
 * `channel_group`, and `k_end` behind the last k.
 *
 * @param isAligned the columns of a group are a multiple of `width`, the unit of the binding.
 */
export function groupColumns(name: string, width: 2 | 4, isAligned: boolean): BlockFactor {
  const rowStart = (columns: string): string => `(k * s.groups + channel_group) * ${columns}`;
  const quad = (element: (j: number) => string, count: number): string =>
    count === 1
      ? element(0)
      : `vec4f(${Array.from({ length: count }, (_, j) => element(j)).join(", ")})`;
  const [at, value] = isAligned
    ? [
        `${rowStart("s.columns")} + quad * ${4 / width}u`,
        quad((j) => `load_${name}(at + ${j}u)`, 4 / width),
      ]
    : [`${rowStart("s.n")} + quad * 4u`, quad((j) => `at_${name}(at + ${j}u)`, 4)];
  return {
    functions: `fn right_quad(k: u32, quad: u32, channel_group: u32, k_end: u32) -> vec4f {
  let at = ${at};
  return select(vec4f(), ${value}, k < k_end);
}
`,
    quads: {
      along: "across",
      isBounded: true,
      of: (k, quad) => `right_quad(${k}, ${quad}, channel_group, k_end)`,
    },
  };
}
