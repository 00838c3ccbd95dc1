import type { FactorQuads } from "../matmul/block.js";
import type { TilePlan } from "../matmul/shape.js";
import type { ChannelGroup } from "./gathering.js";

/**
 * The right factor of a product, of which row k has the columns of all groups: an HWIO weight, or the gradient by the output. Needs
 * `channel_group`, and `k_end` behind the last k.
 */
export function groupColumns(
  name: string,
  { width, isAligned }: Pick<TilePlan, "width" | "isAligned">,
  columnGroup: ChannelGroup,
): FactorQuads {
  const row = "k * s.groups + channel_group";
  const elements = (count: number, element: (j: number) => string): string =>
    Array.from({ length: count }, (_, j) => element(j)).join(", ");
  const [at, value] = isAligned
    ? [
        `(${row}) * s.columns + quad * ${4 / width}u`,
        `vec4f(${elements(4 / width, (j) => `load_${name}(at + ${j}u)`)})`,
      ]
    : [`(${row}) * s.n + quad * 4u`, `vec4f(${elements(4, (j) => `at_${name}(at + ${j}u)`)})`];
  return {
    along: "across",
    isBounded: true,
    functions: `fn right_quad(k: u32, quad: u32, channel_group: u32, k_end: u32) -> vec4f {
  let at = ${at};
  return select(vec4f(), ${value}, k < k_end);
}
`,
    of: (k, quad) => `right_quad(${k}, ${quad}, channel_group, k_end)`,
    ...(columnGroup > 1 && {
      copied: {
        elements: columnGroup as 4 | 8,
        start: "channel_group * s.n",
        stride: "(s.n * s.groups)",
        end: "k_end",
        load: (index: string) => `stored_${name}(${index})`,
      },
    }),
  };
}
