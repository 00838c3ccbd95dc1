import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";

/**
 * counts[rows, classes] = how often each class is among the labels [rows, classes] (uint32) of its row. The first invalid label
 * ends a row's list.
 */
export function labelCounts<B>(
  operands: { readonly labels: Binding<B>; readonly counts: Binding<B> },
  { rows, classes }: { readonly rows: number; readonly classes: number },
): Launch<B> {
  requireLengths("labelCounts", operands, { labels: rows * classes, counts: rows * classes });
  const { labels, counts } = operands;
  return { kernel, bindings: [labels, counts], scalars: { rows, classes } };
}

const kernel: Kernel = defineKernel({
  name: "labelCounts",
  bindings: [
    { name: "labels", access: "read", unit: 1, dtypes: ["uint32"] },
    { name: "counts", access: "write" },
  ],
  scalars: [
    { name: "rows", type: "u32" },
    { name: "classes", type: "u32" },
  ],
  body: () => `
fn count_at(i: u32) -> f32 {
  let start = i / s.classes * s.classes;
  let own = i % s.classes;
  var count = 0.0;
  for (var j = 0u; j < s.classes; j++) {
    let label = at_labels(start + j);
    if (label >= s.classes) { break; }
    count += select(0.0, 1.0, label == own);
  }
  return count;
}
${linearMain()}
  let i = index * 4u;
  if (i >= s.rows * s.classes) { return; }
  store_counts(index, vec4f(count_at(i), count_at(i + 1u), count_at(i + 2u), count_at(i + 3u)));
}
`,
  workgroups: ({ rows, classes }) =>
    linearWorkgroups(Math.ceil(((rows as number) * (classes as number)) / 4)),
  reference([labels, counts], { rows, classes }) {
    const [from, to] = [labels, counts] as [KernelView, KernelView];
    const width = classes as number;
    to.fill(0);
    for (let row = 0; row < (rows as number); row++)
      for (let j = 0; j < width; j++) {
        const label = from[row * width + j] as number;
        if (label >= width) break;
        to[row * width + label] = (to[row * width + label] as number) + 1;
      }
  },
});
