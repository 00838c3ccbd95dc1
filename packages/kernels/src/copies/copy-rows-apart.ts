import type { Binding, Launch } from "@halfstep/device";
import { defineKernel, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";

/** The invocations of a workgroup copy neighbouring quads of a row, and then of the next row. */
const [invocations, rowsEach] = [8, 4];

const kernel = defineKernel({
  name: "copyRowsApart",
  storesItself: true,
  bindings: [
    { name: "input", access: "read" },
    { name: "out", access: "write" },
  ],
  scalars: [
    { name: "rows", type: "u32" },
    { name: "length", type: "u32" },
    { name: "stride", type: "u32" },
  ],
  body: () => `@compute @workgroup_size(${invocations})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  let first = (group.x + group.y * groups.x) * ${rowsEach}u;
  for (var row = first; row < min(first + ${rowsEach}u, s.rows); row++) {
    for (var quad = local; quad < s.length / 4u; quad += ${invocations}u) {
      out_data[row * (s.stride / 4u) + quad] = input_data[row * (s.length / 4u) + quad];
    }
  }
}
`,
  workgroups: ({ rows }) => linearWorkgroups(rows as number, rowsEach),
  reference([input, out], { rows, length, stride }) {
    if (!input || !out) return;
    for (let row = 0; row < (rows as number); row++)
      for (let i = 0; i < (length as number); i++)
        out[row * (stride as number) + i] = input[row * (length as number) + i] as number;
  },
});

/**
 * Copies `rows` rows of `length` elements to places `stride` elements apart, bit for bit. Both numbers are multiples of 4. The
 * elements between rows are not written. For CPU adapters: it has too few invocations for a GPU.
 */
export function copyRowsApart<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  scalars: { readonly rows: number; readonly length: number; readonly stride: number },
): Launch<B> {
  const { rows, length, stride } = scalars;
  requireLengths("copyRowsApart", operands, { input: rows * length, out: rows * stride });
  const { input, out } = operands;
  return { kernel, bindings: [input, out], scalars };
}
