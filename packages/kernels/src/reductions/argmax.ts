import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { anyDType, valueType } from "../copies/value-type.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";

/**
 * out[rows] (uint32) = the column of each row's maximum (or minimum) in input[rows, columns], floats or integers: ties go to the first,
 * and the first NaN wins.
 */
export function argmax<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  { rows, columns, largest = true }: ArgmaxAttributes,
): Launch<B> {
  requireLengths("argmax", operands, { input: rows * columns, out: rows });
  if (columns === 0) throw new RangeError("argmax: rows of 0 columns have no maximum");
  const kernel = kernels[largest ? "maximum" : "minimum"];
  return { kernel, bindings: [operands.input, operands.out], scalars: { rows, columns } };
}

/** The rows of a search. */
export interface ArgmaxAttributes {
  readonly rows: number;
  readonly columns: number;
  /** True for the maximum, false for the minimum. Default true. */
  readonly largest?: boolean;
}

// It tests the bits for NaN, because WGSL may assume that NaN does not occur in comparisons.
const isNan = {
  f32: "(bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u",
  i32: "false",
  u32: "false",
} as const;

const makeKernel = (variant: "maximum" | "minimum"): Kernel =>
  defineKernel({
    name: "argmax",
    variant,
    bindings: [
      { name: "input", access: "read", dtypes: anyDType },
      { name: "out", access: "write", unit: 1, dtypes: ["uint32"] },
    ],
    scalars: [
      { name: "rows", type: "u32" },
      { name: "columns", type: "u32" },
    ],
    body({ bindings }) {
      const type = valueType(bindings[0]?.dtype);
      return `
fn is_nan(v: ${type}) -> bool { return ${isNan[type]}; }
${linearMain()}
  if (index >= s.rows) { return; }
  let base = index * s.columns;
  var best = at_input(base);
  var winner = 0u;
  for (var c = 1u; c < s.columns; c++) {
    let v = at_input(base + c);
    let wins = !is_nan(best) & (is_nan(v) | (v ${variant === "maximum" ? ">" : "<"} best));
    best = select(best, v, wins);
    winner = select(winner, c, wins);
  }
  store_out(index, winner);
}
`;
    },
    workgroups: ({ rows }) => linearWorkgroups(rows as number),
    reference([input, out], scalars) {
      const { rows, columns } = scalars as { rows: number; columns: number };
      const x = input as KernelView;
      const sign = variant === "maximum" ? 1 : -1;
      for (let r = 0; r < rows; r++) {
        let best = x[r * columns] as number;
        let winner = 0;
        for (let c = 1; c < columns && !Number.isNaN(best); c++) {
          const value = x[r * columns + c] as number;
          if (!(sign * value > sign * best) && !Number.isNaN(value)) continue;
          best = value;
          winner = c;
        }
        (out as KernelView)[r] = winner;
      }
    },
  });

const kernels = { maximum: makeKernel("maximum"), minimum: makeKernel("minimum") };
