import type { Binding, Kernel, Launch, LaunchTarget } from "@halfstep/device";
import type { KernelDefinition } from "../definition.js";
import { defineKernel, walkMain, walkWorkgroups, zeroBehind } from "../kernel.js";
import { scratch } from "../scratch.js";
import { rowSumsLength } from "./row-sums.js";
import type { ProductPlan } from "./shape.js";

/** The results of a product: the product, and optionally the sums of its left factor's rows. */
export interface ProductResults<B> {
  readonly out: Binding<B>;
  /** [m] */
  readonly rowSums?: Binding<B> | undefined;
}

/**
 * Launches a product into `out` [batch, m, n]. Where k is divided, or rows of the result would begin inside a store, the
 * product is first stored in float32 scratch memory, and its parts are added up from there in a fixed order.
 */
export function launchProduct<B>(
  target: LaunchTarget<B>,
  plan: ProductPlan,
  { out, rowSums }: ProductResults<B>,
  { batch, m, n }: { readonly batch: number; readonly m: number; readonly n: number },
  product: (results: ProductResults<B>) => Launch<B>,
  sumPartsAndRows?: Kernel,
): void {
  if (out.length === 0) return;
  const { splits, isAligned, columns, width } = plan;
  if (splits === 1 && isAligned) {
    target.launch(product({ out, rowSums }));
    return;
  }
  const stride = columns * width;
  const parts = scratch(target, batch * splits * m * stride);
  const scalars = { count: out.length, splits, m, n, stride };
  if (splits === 1 || !rowSums || !sumPartsAndRows) {
    target.launch(product({ out: parts, rowSums }));
    const bindings = [parts, out];
    target.launch({ kernel: sumPartsKernel, bindings, scalars });
  } else {
    const sumsOfParts = scratch(target, splits * rowSumsLength(m));
    target.launch(product({ out: parts, rowSums: sumsOfParts }));
    const bindings = [parts, sumsOfParts, rowSums, out];
    target.launch({ kernel: sumPartsAndRows, bindings, scalars });
  }
}

/**
 * out[b, i, j] = Σ over s of parts[b, s, i, j], with `stride` ≥ n elements between the rows of `parts`. `out` is
 * [batch, m, n] and contiguous.
 *
 * @param addSums WGSL of invocations behind the quads of `out`, which add up `sums_of_parts` to `row_sums`. Default: there are none.
 */
export const sumPartsDefinition = (addSums = ""): KernelDefinition => {
  const hasRowSums = addSums !== "";
  return {
    name: "sumParts",
    variant: hasRowSums ? "row sums" : "",
    epilogue: "store",
    ...(hasRowSums && { storedOnce: ["row_sums"] }),
    bindings: [
      { name: "parts", access: "read", dtypes: ["float32"] },
      ...(hasRowSums
        ? ([
            { name: "sums_of_parts", access: "read", dtypes: ["float32"] },
            { name: "row_sums", access: "write" },
          ] as const)
        : []),
      { name: "out", access: "write" },
    ],
    scalars: [
      { name: "count", type: "u32" },
      { name: "splits", type: "u32" },
      { name: "m", type: "u32" },
      { name: "n", type: "u32" },
      { name: "stride", type: "u32" },
    ],
    // Quads of the result are quads of the parts only where no row begins inside a quad.
    body: (context) => `
fn sum_at(i: u32) -> f32 {
  let row = i / s.n;
  let batch = row / s.m;
  var at = (batch * s.splits * s.m + row % s.m) * s.stride + i % s.n;
  var sum = 0.0;
  for (var part = 0u; part < s.splits; part++) {
    sum += at_parts(at);
    at += s.m * s.stride;
  }
  return sum;
}
fn sum_quad_at(q: u32) -> vec4f {
  let quads = (s.m * s.n) >> 2u;
  var at = q + q / quads * quads * (s.splits - 1u);
  var sum = vec4f();
  for (var part = 0u; part < s.splits; part++) {
    sum += load_parts(at);
    at += quads;
  }
  return sum;
}
${walkMain(`(s.count + 3u) / 4u${hasRowSums ? " + ((s.m + 3u) >> 2u)" : ""}`, context)}${addSums}  var sum: vec4f;
  if (s.stride == s.n && ((s.m * s.n) & 3u) == 0u) {
    sum = sum_quad_at(index);
  } else {
    let i = index * 4u;
    sum = vec4f(sum_at(i), sum_at(i + 1u), sum_at(i + 2u), sum_at(i + 3u));
  }
  store_out(index, ${zeroBehind("sum", "s.count")});
  }
}
`,
    workgroups: ({ count, m }, _, context) =>
      walkWorkgroups(
        Math.ceil((count as number) / 4) + (hasRowSums ? rowSumsLength(m as number) / 4 : 0),
        context,
      ),
    reference(views, scalars) {
      const { splits, m, n, stride } = scalars as Record<"splits" | "m" | "n" | "stride", number>;
      const [parts, out] = [views[0], views.at(-1)];
      if (!parts || !out) return;
      const [, sumsOfParts, rowSums] = views;
      if (hasRowSums && sumsOfParts && rowSums)
        for (let i = 0; i < m; i++) {
          let sum = 0;
          for (let part = 0; part < splits; part++)
            sum += sumsOfParts[part * rowSumsLength(m) + i] as number;
          rowSums[i] = sum;
        }
      for (let i = 0; i < out.length; i++) {
        const row = Math.floor(i / n);
        const batch = Math.floor(row / m);
        let at = (batch * splits * m + (row % m)) * stride + (i % n);
        let sum = 0;
        for (let part = 0; part < splits; part++, at += m * stride) sum += parts[at] as number;
        out[i] = sum;
      }
    },
  };
};

const sumPartsKernel = defineKernel(sumPartsDefinition());
