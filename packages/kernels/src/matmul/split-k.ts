import type { Binding, Launch, LaunchTarget } from "@halfstep/device";
import { defineKernel, walkMain, walkWorkgroups, zeroBehind } from "../kernel.js";
import { scratch } from "../scratch.js";
import type { ProductPlan } from "./shape.js";

/**
 * Launches a product into `out` [batch, m, n]. Where k is divided, or rows of the result would begin inside a store, the
 * product goes to float32 scratch memory first, and its parts are added up from there in a fixed order.
 */
export function launchProduct<B>(
  target: LaunchTarget<B>,
  plan: ProductPlan,
  out: Binding<B>,
  { batch, m, n }: { readonly batch: number; readonly m: number; readonly n: number },
  product: (out: Binding<B>) => Launch<B>,
): void {
  if (out.length === 0) return;
  const { splits, isAligned, columns, width } = plan;
  if (splits === 1 && isAligned) {
    target.launch(product(out));
    return;
  }
  const parts = scratch(target, batch * splits * m * columns * width);
  target.launch(product(parts));
  target.launch(sumParts({ parts, out }, { splits, m, n, stride: columns * width }));
}

/**
 * out[b, i, j] = Σ over s of parts[b, s, i, j], with `stride` ≥ n elements between the rows of `parts`. `out` is
 * [batch, m, n] and contiguous.
 */
function sumParts<B>(
  { parts, out }: { readonly parts: Binding<B>; readonly out: Binding<B> },
  attributes: {
    readonly splits: number;
    readonly m: number;
    readonly n: number;
    readonly stride: number;
  },
): Launch<B> {
  const { splits, m, n, stride } = attributes;
  return {
    kernel: sumPartsKernel,
    bindings: [parts, out],
    scalars: { count: out.length, splits, m, n, stride },
  };
}

const sumPartsKernel = defineKernel({
  name: "sumParts",
  epilogue: "store",
  bindings: [
    { name: "parts", access: "read", dtypes: ["float32"] },
    { name: "out", access: "write" },
  ],
  scalars: [
    { name: "count", type: "u32" },
    { name: "splits", type: "u32" },
    { name: "m", type: "u32" },
    { name: "n", type: "u32" },
    { name: "stride", type: "u32" },
  ],
  // Quads of the result are quads of each part only where no row begins inside one.
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
${walkMain("(s.count + 3u) / 4u", context)}  var sum: vec4f;
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
  workgroups: ({ count }, _, context) => walkWorkgroups(Math.ceil((count as number) / 4), context),
  reference([parts, out], scalars) {
    const { splits, m, n, stride } = scalars as Record<"splits" | "m" | "n" | "stride", number>;
    if (!parts || !out) return;
    for (let i = 0; i < out.length; i++) {
      const row = Math.floor(i / n);
      const batch = Math.floor(row / m);
      let at = (batch * splits * m + (row % m)) * stride + (i % n);
      let sum = 0;
      for (let part = 0; part < splits; part++, at += m * stride) sum += parts[at] as number;
      out[i] = sum;
    }
  },
});
