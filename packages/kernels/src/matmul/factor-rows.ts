import type { Binding, Kernel, Launch } from "@halfstep/device";
import type { DefinedKernel } from "../kernel.js";

/** The rows of a factor of a matrix product, as they lie in its binding: one after the other, those of a batch too. */
export interface FactorRows<B> {
  readonly factor: "a" | "b";
  readonly binding: Binding<B>;
  readonly rows: number;
  /** Elements between rows, which are as many as each row has. */
  readonly stride: number;
  /** How often each of its elements is multiplied. */
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
 * The launch with a factor whose rows lie elsewhere, `stride` elements apart: a multiple of 4. What is between them is loaded at
 * times, and changes no result.
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
