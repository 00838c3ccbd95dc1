import type { Binding, Kernel, Launch } from "@halfstep/device";
import type { DefinedKernel } from "../kernel.js";

/** The rows of a factor of a matrix product in its binding: contiguous, also over a batch. */
export interface FactorRows<B> {
  readonly factor: "a" | "b";
  readonly binding: Binding<B>;
  readonly rows: number;
  /** Distance between rows in elements: the length of a row. */
  readonly stride: number;
  /** Number of products of each of its elements. */
  readonly uses: number;
  /** Products that are added up in each element of the result. */
  readonly depth: number;
}

/** The factors of a launch of `matmul()`, or of one with an epilogue; none for other launches. */
export function factorRows<B>({ kernel, bindings, scalars }: Launch<B>): readonly FactorRows<B>[] {
  if (!(kernel as Kernel & Partial<DefinedKernel>).hasFactorRows) return [];
  return (["a", "b"] as const).map((factor, i) => {
    const binding = bindings[i] as Binding<B>;
    const stride = scalars[`${factor}_stride`] as number;
    const uses = scalars[factor === "a" ? "n" : "m"] as number;
    const rows = binding.length / stride;
    return { factor, binding, rows, stride, uses, depth: scalars.k as number };
  });
}

/**
 * The launch with another binding of a factor, whose rows are `stride` elements apart, a multiple of 4. Elements between rows
 * may be loaded but do not change results.
 */
export function withFactorRows<B>(
  launch: Launch<B>,
  { factor, stride: old }: Pick<FactorRows<B>, "factor" | "stride">,
  binding: Binding<B>,
  stride: number,
): Launch<B> {
  const { bindings, scalars } = launch;
  const index = factor === "a" ? 0 : 1;
  const batch = `${factor}_batch`;
  return {
    ...launch,
    bindings: bindings.map((before, b) => (b === index ? binding : before)),
    scalars: {
      ...scalars,
      [`${factor}_stride`]: stride,
      [batch]: ((scalars[batch] as number) / old) * stride,
    },
  };
}
