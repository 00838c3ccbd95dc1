import type { Binding, KernelView, Launch } from "@halfstep/device";
import { defineKernel } from "./kernel.js";

/** Float32 elements of the control words that {@link stepControl} leaves for a step. */
export const controlLength = 8;

const kernel = defineKernel({
  name: "step-control",
  bindings: [
    { name: "foundInf", access: "read", unit: 1, dtypes: ["float32"] },
    { name: "scale", access: "read", unit: 1, dtypes: ["float32"] },
    { name: "applied", access: "readwrite", unit: 1, dtypes: ["uint32"] },
    { name: "table", access: "read", dtypes: ["float32"] },
    { name: "control", access: "write", dtypes: ["float32"] },
  ],
  scalars: [
    { name: "lr", type: "f32", runtime: true },
    { name: "rows", type: "u32", runtime: true },
  ],
  body: () => `@compute @workgroup_size(1) fn main() {
  let applied = at_applied(0u);
  let row = load_table(min(applied, s.rows - 1u));
  let skips = (bitcast<u32>(at_foundInf(0u)) & 0x7fffffffu) != 0u;
  store_control(0u, vec4f(select(1.0, 0.0, skips), at_scale(1u), s.lr * row.x, f32(applied == 0u)));
  store_control(1u, row);
  if (!skips) { store_applied(0u, applied + 1u); }
}
`,
  workgroups: () => [1, 1, 1],
  reference([foundInf, scale, appliedCount, table, control], { lr, rows }) {
    const applied = appliedCount?.[0] as number;
    const row = Math.min(applied, (rows as number) - 1) * 4;
    const words = (table as KernelView).subarray(row, row + 4);
    const skips = foundInf?.[0] !== 0;
    const inverse = scale?.[1] as number;
    const rate = (lr as number) * (words[0] as number);
    (control as KernelView).set([Number(!skips), inverse, rate, Number(applied === 0), ...words]);
    if (!skips) (appliedCount as KernelView)[0] = applied + 1;
  },
});

/**
 * Prepares one step of an optimizer on the device, and counts it unless it is skipped.
 *
 * - `foundInf`: one float32; where it is not 0 the step is skipped.
 * - `scale`: a loss scaler's float32 `[scale, 1 / scale, …]`; `[1, 1]` for gradients that carry none.
 * - `applied`: one uint32, how many steps were applied so far.
 * - `table`: float32 rows `[lr, …, …, …]`, one for each applied step; the last row holds from then on.
 * - `control`: eight float32, made anew: `[0 where skipped, 1 / scale, lr attribute × lr of the row, 1 in the first
 *   applied step, …row]`.
 */
export function stepControl<B>(
  operands: {
    readonly foundInf: B;
    readonly scale: B;
    readonly applied: B;
    readonly table: Binding<B>;
    readonly control: Binding<B>;
  },
  attributes: { readonly lr: number },
): Launch<B> {
  const { foundInf, scale, applied, table, control } = operands;
  return {
    kernel,
    bindings: [
      { buffer: foundInf, offset: 0, length: 1, dtype: "float32" },
      { buffer: scale, offset: 0, length: 2, dtype: "float32" },
      { buffer: applied, offset: 0, length: 1, dtype: "uint32" },
      table,
      control,
    ],
    scalars: { lr: attributes.lr, rows: table.length / 4 },
  };
}
