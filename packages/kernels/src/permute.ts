import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";
import { requireLengths } from "./operands.js";

export interface PermuteAttributes {
  /** Shape of the input. */
  readonly shape: readonly number[];
  /** Dimension d of the result is dimension order[d] of the input, as in torch.permute. */
  readonly order: readonly number[];
}

/** out = input with its dimensions in another order. At most five groups of dimensions may move apart. */
export function permute<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  { shape, order }: PermuteAttributes,
): Launch<B> {
  if ([...order].sort((a, b) => a - b).some((d, i) => d !== i) || order.length !== shape.length)
    throw new RangeError(
      `permute: [${order}] does not name each of the ${shape.length} dimensions of [${shape}] once`,
    );
  const count = shape.reduce((product, size) => product * size, 1);
  requireLengths("permute", operands, { input: count, out: count });
  const { sizes, strides } = mergedWalk(shape, order);
  // Rows that stay whole move a quad at a time.
  const movesQuads = strides.at(-1) === 1 && (sizes.at(-1) as number) % 4 === 0;
  const scalars: Record<string, number> = { count };
  for (const [d, size] of sizes.entries()) {
    const isLast = d === sizes.length - 1;
    const stride = strides[d] as number;
    scalars[`size${d}`] = movesQuads && isLast ? size / 4 : size;
    scalars[`stride${d}`] = movesQuads && !isLast ? stride / 4 : stride;
  }
  return {
    kernel: kernelOf(sizes.length, movesQuads),
    bindings: [operands.input, operands.out],
    scalars,
  };
}

/** Sizes of the result's dimensions, outermost first, and their strides in the input, with neighbours that stay together merged. */
function mergedWalk(
  shape: readonly number[],
  order: readonly number[],
): { sizes: number[]; strides: number[] } {
  const inputStrides = shape.map((_, d) => shape.slice(d + 1).reduce((a, b) => a * b, 1));
  const sizes: number[] = [];
  const strides: number[] = [];
  for (const d of order) {
    const [size, stride] = [shape[d] as number, inputStrides[d] as number];
    if (size === 1) continue;
    const last = sizes.length - 1;
    if (strides[last] === stride * size) {
      sizes[last] = (sizes[last] as number) * size;
      strides[last] = stride;
    } else {
      sizes.push(size);
      strides.push(stride);
    }
  }
  if (sizes.length > 5)
    throw new RangeError(
      `permute: [${order}] of [${shape}] moves ${sizes.length} groups of dimensions, at most 5 are possible: permute in two steps`,
    );
  return sizes.length === 0 ? { sizes: [1], strides: [1] } : { sizes, strides };
}

const kernels = new Map<string, Kernel>();

function kernelOf(rank: number, movesQuads: boolean): Kernel {
  const variant = `${rank}${movesQuads ? ",quads" : ""}`;
  let kernel = kernels.get(variant);
  if (!kernel) {
    kernel = makeKernel(rank, movesQuads, variant);
    kernels.set(variant, kernel);
  }
  return kernel;
}

function makeKernel(rank: number, movesQuads: boolean, variant: string): Kernel {
  const axes = Array.from({ length: rank }, (_, d) => d);
  let walk = "  var rest = i;\n  var offset = 0u;\n";
  for (const d of axes.slice(1).reverse())
    walk += `  offset += rest % s.size${d} * s.stride${d};\n  rest /= s.size${d};\n`;
  const gathered = [0, 1, 2, 3].map((j) => `at_input(source(index * 4u + ${j}u))`).join(", ");
  return defineKernel({
    name: "permute",
    variant,
    bindings: [
      { name: "input", access: "read" },
      { name: "out", access: "write" },
    ],
    scalars: [
      { name: "count", type: "u32" },
      ...axes.map((d) => ({ name: `size${d}`, type: "u32" as const })),
      ...axes.map((d) => ({ name: `stride${d}`, type: "u32" as const })),
    ],
    body: () => `
fn source(i: u32) -> u32 {
${walk}  return offset + rest * s.stride0;
}
${linearMain()}
  if (index * 4u >= s.count) { return; }
  store_out(index, ${movesQuads ? "load_input(source(index))" : `vec4f(${gathered})`});
}
`,
    workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
    reference([input, out], scalars) {
      const [x, y] = [input, out] as [KernelView, KernelView];
      const unit = movesQuads ? 4 : 1;
      const sizes = axes.map((d) => scalars[`size${d}`] as number);
      const strides = axes.map((d) => scalars[`stride${d}`] as number);
      const place = axes.map(() => 0);
      for (let i = 0, from = 0; i < y.length; i += unit) {
        for (let j = 0; j < unit; j++) y[i + j] = x[from * unit + j] as number;
        for (let d = rank - 1; d >= 0; d--) {
          from += strides[d] as number;
          place[d] = (place[d] as number) + 1;
          if ((place[d] as number) < (sizes[d] as number)) break;
          from -= (strides[d] as number) * (sizes[d] as number);
          place[d] = 0;
        }
      }
    },
  });
}
