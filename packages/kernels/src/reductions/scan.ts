import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { requireOneOf } from "../attributes.js";
import { type Domain, domainOf, dtypesOf, quadType, scalarType } from "../domain.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths, requireTarget } from "../operands.js";
import { scanLongRows } from "./long-sums.js";

/**
 * The recurrence along a row: h = h + x, h = h · x, or the linear recurrence h = m · h + x, which computes the derivatives of
 * all three. The initial values are 0, 1 and 0.
 */
export type ScanOp = "sum" | "product" | "recurrence";

/** The rows and the options of a scan. */
export interface ScanAttributes {
  readonly op: ScanOp;
  readonly rows: number;
  readonly columns: number;
  /** From the last column to the first. Default false. */
  readonly reverse?: boolean;
}

/** Sums of longer rows are divided. */
const longRow = 1024;

/**
 * out[rows, columns] = the running sum, product or recurrence along each row, in float32; sums and products of integers modulo 2^32. One
 * invocation scans a row. Sums of rows of more than 1024 elements are computed in chunks; products are not, because that of a chunk
 * may overflow where the running product does not. Throws a `RangeError` for an unknown op and lengths that do not fit.
 */
export function scan<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly input: Binding<B>;
    /** m of the recurrence, like the input. */
    readonly multiplier?: Binding<B>;
    readonly out: Binding<B>;
  },
  attributes: ScanAttributes,
): void {
  requireTarget("scan", target);
  const { op, rows, columns, reverse = false } = attributes;
  requireOneOf("scan", "op", op, ["sum", "product", "recurrence"]);
  const { input, multiplier, out } = operands;
  const count = rows * columns;
  requireLengths("scan", operands, { input: count, multiplier: count, out: count });
  if ((op === "recurrence") !== (multiplier !== undefined))
    throw new RangeError(`scan: a multiplier belongs to a recurrence, not to a ${op}`);
  if (op === "sum" && columns > longRow) {
    scanLongRows(target, input, out, { rows, columns, reverse });
    return;
  }
  // Where rows are not whole quads, an invocation scans four rows, which together are.
  const quads = columns % 4 === 0 ? columns / 4 : columns;
  target.launch({
    kernel: kernelsOf(domainOf(input.dtype), op)[reverse ? "reverse" : "forward"],
    bindings: multiplier ? [input, multiplier, out] : [input, out],
    scalars: { count, columns, quads },
  });
}

interface ScanStep {
  readonly start: number;
  readonly wgsl: string;
  float(h: number, x: number, m: number): number;
  /** The low 32 bits of the same for integers. */
  integer?(h: number, x: number): number;
}

const steps: Record<ScanOp, ScanStep> = {
  sum: { start: 0, wgsl: "h + x[l]", float: (h, x) => h + x, integer: (h, x) => (h + x) | 0 },
  product: { start: 1, wgsl: "h * x[l]", float: (h, x) => h * x, integer: Math.imul },
  recurrence: { start: 0, wgsl: "m[l] * h + x[l]", float: (h, x, m) => m * h + x },
};

function makeKernel(op: ScanOp, direction: "forward" | "reverse", domain: Domain): Kernel {
  const isReverse = direction === "reverse";
  const { start, wgsl, float, integer } = steps[op];
  const isFloat = domain === "float";
  const next = isFloat ? float : (integer as ScanStep["float"]);
  const dtypes = dtypesOf(domain);
  const scalar = scalarType(domain);
  const hasMultiplier = op === "recurrence";
  return defineKernel({
    name: "scan",
    ...(isFloat && { epilogue: "store" }),
    variant: isFloat ? `${op},${direction}` : `${op},${direction},${domain}`,
    bindings: [
      { name: "input", access: "read", dtypes },
      ...(hasMultiplier ? [{ name: "multiplier", access: "read" as const }] : []),
      { name: "out", access: "write", dtypes },
    ],
    scalars: ["count", "columns", "quads"].map((name) => ({ name, type: "u32" })),
    body: () => `${linearMain()}
  let first = index * s.quads;
  if (first * 4u >= s.count) { return; }
  let end = min(first + s.quads, (s.count + 3u) / 4u);
  var h = ${scalar}(${start});
  for (var n = first; n < end; n++) {
    let q = ${isReverse ? "end - 1u - (n - first)" : "n"};
    let x = load_input(q);
${hasMultiplier ? "    let m = load_multiplier(q);\n" : ""}    var y: ${quadType(domain)};
    for (var j = 0u; j < 4u; j++) {
      let l = ${isReverse ? "3u - j" : "j"};
      let e = q * 4u + l;
      if (${isReverse ? "(e + 1u) % s.columns == 0u" : "e % s.columns == 0u"}) { h = ${scalar}(${start}); }
      h = ${wgsl};
      y[l] = h;
    }
    store_out(q, y);
  }
}
`,
    workgroups: ({ count, quads }) =>
      linearWorkgroups(quads === 0 ? 0 : Math.ceil((count as number) / 4 / (quads as number))),
    reference(views, { count, columns }) {
      const [x, m, y] = (hasMultiplier ? views : [views[0], views[0], views[1]]) as [
        KernelView,
        KernelView,
        KernelView,
      ];
      const size = columns as number;
      let h = start;
      for (let n = 0; n < (count as number); n++) {
        if (n % size === 0) h = start;
        const e = isReverse ? n - (n % size) + size - 1 - (n % size) : n;
        h = next(h, x[e] as number, m[e] as number);
        y[e] = domain === "uint32" ? h >>> 0 : h;
      }
    },
  });
}

const both = (op: ScanOp, domain: Domain) => ({
  forward: makeKernel(op, "forward", domain),
  reverse: makeKernel(op, "reverse", domain),
});

const ofDomain = (domain: Domain) => ({
  sum: both("sum", domain),
  product: both("product", domain),
});

const kernels = {
  float: ofDomain("float"),
  int32: ofDomain("int32"),
  uint32: ofDomain("uint32"),
};

const recurrence = both("recurrence", "float");

const kernelsOf = (domain: Domain, op: ScanOp) =>
  op === "recurrence" ? recurrence : kernels[domain][op];
