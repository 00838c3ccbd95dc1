import { Generator, type Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import type { GradientCase } from "../gradient-check.js";
import { type FamilyCases, on, type Shape } from "./builders.js";

const attention = (
  name: string,
  shapes: readonly [Shape, Shape, Shape],
  options: ops.AttentionOptions,
): GradientCase =>
  on(name, shapes, ([q, k, v]) =>
    ops.scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor, options),
  );

const heads: readonly Shape[] = [
  [2, 3, 2],
  [2, 4, 2],
  [2, 4, 3],
];

/** Attention: its mask has a gradient too where it is added. */
export const attentionCases: FamilyCases = {
  scaledDotProductAttention: {
    second: "checked",
    cases: [
      attention(
        "plain",
        [
          [2, 3, 2],
          [2, 4, 2],
          [2, 4, 3],
        ],
        {},
      ),
      attention(
        "causal",
        [
          [1, 2, 3, 2],
          [1, 2, 3, 2],
          [1, 2, 3, 2],
        ],
        { isCausal: true },
      ),
      attention("a window", [...heads] as [Shape, Shape, Shape], { window: 1 }),
      attention(
        "grouped heads",
        [
          [4, 2, 2],
          [2, 3, 2],
          [2, 3, 1],
        ],
        { enableGqa: true, isCausal: true },
      ),
      attention(
        "shared keys",
        [
          [2, 2, 3],
          [2, 3],
          [2, 2],
        ],
        { scale: 0.7 },
      ),
      on(
        "additive mask",
        [
          [2, 2],
          [3, 2],
          [3, 2],
          [2, 3],
        ],
        ([q, k, v, mask]) =>
          ops.scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor, {
            mask: mask as Tensor,
          }),
      ),
      on("what is kept after dropout", heads, ([q, k, v]) =>
        ops.scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor, {
          dropout: { p: 0.4, generator: new Generator(5) },
        }),
      ),
      on("padded keys", heads, ([q, k, v], runtime) =>
        ops.scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor, {
          keyLengths: runtime.tensor(Uint32Array.of(3, 0)),
          isCausal: true,
        }),
      ),
      on("padded keys under a mask", heads, ([q, k, v], runtime) =>
        ops.scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor, {
          keyLengths: runtime.tensor(Uint32Array.of(3, 2)),
          mask: runtime.tensor([0.5, -1, 0, 2], [4]),
        }),
      ),
      on(
        "mask",
        [
          [2, 2],
          [3, 2],
          [3, 2],
        ],
        ([q, k, v], runtime) =>
          ops.scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor, {
            mask: runtime.tensor(Uint32Array.of(1, 0, 1, 0, 1, 1), [2, 3]),
          }),
      ),
    ],
  },
};
