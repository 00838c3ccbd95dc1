import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";

/** out[rows] (uint32) = the column of each row's maximum in input[rows, columns]: ties go to the first, and the first NaN wins. */
export function argmax<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  { rows, columns }: { readonly rows: number; readonly columns: number },
): Launch<B> {
  requireLengths("argmax", operands, { input: rows * columns, out: rows });
  if (columns === 0) throw new RangeError("argmax: rows of 0 columns have no maximum");
  return { kernel, bindings: [operands.input, operands.out], scalars: { rows, columns } };
}

const kernel: Kernel = defineKernel({
  name: "argmax",
  bindings: [
    { name: "input", access: "read" },
    { name: "out", access: "write", unit: 1, dtypes: ["uint32"] },
  ],
  scalars: [
    { name: "rows", type: "u32" },
    { name: "columns", type: "u32" },
  ],
  // It tests the bits for NaN, because WGSL may assume that NaN does not occur in comparisons.
  body: () => `
fn is_nan(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }
${linearMain()}
  if (index >= s.rows) { return; }
  let base = index * s.columns;
  var best = at_input(base);
  var winner = 0u;
  for (var c = 1u; c < s.columns; c++) {
    let v = at_input(base + c);
    let wins = !is_nan(best) & (is_nan(v) | (v > best));
    best = select(best, v, wins);
    winner = select(winner, c, wins);
  }
  store_out(index, winner);
}
`,
  workgroups: ({ rows }) => linearWorkgroups(rows as number),
  reference([input, out], scalars) {
    const { rows, columns } = scalars as { rows: number; columns: number };
    const x = input as KernelView;
    for (let r = 0; r < rows; r++) {
      let best = x[r * columns] as number;
      let winner = 0;
      for (let c = 1; c < columns && !Number.isNaN(best); c++) {
        const value = x[r * columns + c] as number;
        if (!(value > best) && !Number.isNaN(value)) continue;
        best = value;
        winner = c;
      }
      (out as KernelView)[r] = winner;
    }
  },
});
