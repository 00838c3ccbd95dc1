import type { Binding, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { matmul } from "../matmul.js";

const mix = defineKernel({
  name: "newton-schulz-mix",
  bindings: [
    { name: "gram", access: "read", dtypes: ["float32"] },
    { name: "square", access: "read", dtypes: ["float32"] },
    { name: "mixed", access: "write", dtypes: ["float32"] },
  ],
  scalars: [
    { name: "size", type: "u32" },
    ...(["a", "b", "c"] as const).map((name) => ({ name, type: "f32", runtime: true }) as const),
  ],
  body: () => `${linearMain()}
  if (index * 4u >= s.size * s.size) { return; }
  let e = vec4u(index * 4u) + vec4u(0u, 1u, 2u, 3u);
  let diagonal = select(vec4f(), vec4f(s.a), e / s.size == e % s.size);
  store_mixed(index, s.b * load_gram(index) + s.c * load_square(index) + diagonal);
}
`,
  workgroups: ({ size }) => linearWorkgroups(Math.ceil(((size as number) * (size as number)) / 4)),
  reference([gram, square, mixed], { size, a, b, c }) {
    for (let i = 0; i < (size as number) ** 2; i++) {
      const isDiagonal = i % ((size as number) + 1) === 0;
      (mixed as KernelView)[i] =
        (b as number) * (gram?.[i] as number) +
        (c as number) * (square?.[i] as number) +
        (isDiagonal ? (a as number) : 0);
    }
  },
});

/** Scratch of {@link newtonSchulz}: three float32 squares of the largest shorter side. */
export interface NewtonSchulzScratch<B> {
  readonly gram: B;
  readonly square: B;
  readonly mixed: B;
}

/**
 * The Newton–Schulz iteration of Muon: `x ← a x + (b A + c A²) x` with `A = x xᵀ`, or `xᵀ x` on the right for a matrix with
 * more rows than columns. Each iteration is three products and one launch, in float32. Results alternate between `x` and
 * `other`.
 *
 * @returns the one of the two that has the result.
 */
export function newtonSchulz<B>(
  target: LaunchTarget<B>,
  operands: {
    /** [rows, columns] float32; both are overwritten. */
    readonly x: Binding<B>;
    readonly other: Binding<B>;
    readonly scratch: NewtonSchulzScratch<B>;
  },
  attributes: {
    readonly rows: number;
    readonly columns: number;
    readonly steps: number;
    readonly coefficients: readonly [number, number, number];
  },
): Binding<B> {
  const { rows, columns, steps, coefficients } = attributes;
  const [a, b, c] = coefficients;
  const isTall = rows > columns;
  const size = Math.min(rows, columns);
  const squareOf = (buffer: B): Binding<B> => ({
    buffer,
    offset: 0,
    length: size * size,
    dtype: "float32",
  });
  const gram = squareOf(operands.scratch.gram);
  const square = squareOf(operands.scratch.square);
  const mixed = squareOf(operands.scratch.mixed);
  let { x, other } = operands;
  for (let step = 0; step < steps; step++) {
    const shape = { m: size, n: size, k: isTall ? rows : columns };
    matmul(target, { a: x, b: x, out: gram }, { ...shape, transA: isTall, transB: !isTall });
    matmul(target, { a: gram, b: gram, out: square }, { m: size, n: size, k: size });
    target.launch({ kernel: mix, bindings: [gram, square, mixed], scalars: { size, a, b, c } });
    matmul(target, isTall ? { a: x, b: mixed, out: other } : { a: mixed, b: x, out: other }, {
      m: rows,
      n: columns,
      k: size,
    });
    [x, other] = [other, x];
  }
  return x;
}
