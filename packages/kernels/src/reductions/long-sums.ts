import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { type Domain, domainOf, dtypesOf, quadType, scalarType } from "../domain.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { scratch } from "../scratch.js";

/** Entries that one invocation adds up. */
const chunkSize = 256;

/** Sums along rows of an input, each entry of which stands for `span` neighbouring elements of the rows. */
interface Level {
  readonly count: number;
  readonly span: number;
  /** Elements of all rows. */
  readonly elements: number;
  readonly columns: number;
}

/**
 * The running sums along rows of any length: out[k] = the sum from the start of the row in which entry k ends. The sums of chunks are
 * themselves summed in the same way, so that no sum has more than a few hundred terms. If one invocation added all n elements one by one,
 * it would take long, and float32 would lose up to n units in the last place.
 */
export function scanLongRows<B>(
  target: LaunchTarget<B>,
  input: Binding<B>,
  out: Binding<B>,
  shape: { readonly rows: number; readonly columns: number; readonly reverse: boolean },
): void {
  const domain = domainOf(input.dtype);
  const { columns, reverse } = shape;
  const { totals, sums, onlySums } = kernels[domain][reverse ? "reverse" : "forward"];
  const elements = shape.rows * columns;
  const launchLevel = (from: Binding<B>, to: Binding<B>, level: Level): void => {
    const scalars = { ...level };
    const chunks = Math.ceil(level.count / chunkSize);
    if (chunks === 1) {
      target.launch({ kernel: onlySums, bindings: [from, to], scalars });
      return;
    }
    const [ofChunks, carries] = [0, 1].map(() =>
      scratch(target, chunks, domain === "float" ? "float32" : domain),
    ) as [Binding<B>, Binding<B>];
    target.launch({ kernel: totals, bindings: [from, ofChunks], scalars });
    launchLevel(ofChunks, carries, { ...level, count: chunks, span: level.span * chunkSize });
    target.launch({ kernel: sums, bindings: [from, carries, to], scalars });
  };
  launchLevel(input, out, { count: elements, span: 1, elements, columns });
}

type Direction = "forward" | "reverse";
type Part = "totals" | "sums" | "onlySums";

/** WGSL: whether a row begins in an entry, in the direction of the sum. */
const beginsFunction = (direction: Direction): string => `
fn begins(entry: u32) -> bool {
  let first = entry * s.span;
  let end = min(first + s.span, s.elements);
  return ${
    direction === "forward"
      ? "(first + s.columns - 1u) / s.columns * s.columns < end"
      : "(first + s.columns) / s.columns * s.columns <= end"
  };
}
`;

function rowBegins(
  direction: Direction,
  entry: number,
  { span, elements, columns }: Level,
): boolean {
  const first = entry * span;
  const end = Math.min(first + span, elements);
  return direction === "forward"
    ? Math.ceil(first / columns) * columns < end
    : (Math.floor(first / columns) + 1) * columns <= end;
}

function makeKernel(part: Part, direction: Direction, domain: Domain): Kernel {
  const isReverse = direction === "reverse";
  const isFloat = domain === "float";
  const dtypes = dtypesOf(domain);
  const scalar = scalarType(domain);
  const isTotal = part === "totals";
  const hasCarries = part === "sums";
  const neighbour = isReverse ? "index + 1u" : "index - 1u";
  return defineKernel({
    name: isTotal ? "chunkTotals" : "chunkSums",
    ...(isFloat && !isTotal && { epilogue: "store" }),
    variant: [direction, part, domain].join(","),
    bindings: [
      { name: "input", access: "read", dtypes },
      ...(hasCarries
        ? [{ name: "carries", access: "read" as const, unit: 1 as const, dtypes }]
        : []),
      { name: "out", access: "write", dtypes, ...(isTotal && { unit: 1 as const }) },
    ],
    scalars: ["count", "span", "elements", "columns"].map((name) => ({ name, type: "u32" })),
    body: () => `${beginsFunction(direction)}${linearMain()}
  let first = index * ${chunkSize / 4}u;
  if (first * 4u >= s.count) { return; }
  let end = min(first + ${chunkSize / 4}u, (s.count + 3u) / 4u);
  var carry = ${scalar}(0);
${hasCarries ? `  if (${isReverse ? "end * 4u < s.count" : "index > 0u"}) { carry = at_carries(${neighbour}); }\n` : ""}  var h = ${scalar}(0);
  for (var n = first; n < end; n++) {
    let q = ${isReverse ? "end - 1u - (n - first)" : "n"};
    let x = load_input(q);
${isTotal ? "" : `    var y: ${quadType(domain)};\n`}    for (var j = 0u; j < 4u; j++) {
      let l = ${isReverse ? "3u - j" : "j"};
      if (begins(q * 4u + l)) {
        h = ${scalar}(0);
        carry = h;
      }
      h += x[l];
${isTotal ? "" : "      y[l] = carry + h;\n"}    }
${isTotal ? "" : "    store_out(q, y);\n"}  }
${isTotal ? "  store_out(index, h);\n" : ""}}
`,
    workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / chunkSize)),
    reference(views, scalars) {
      const level = scalars as unknown as Level;
      const [x, y] = [views[0], views.at(-1)] as [KernelView, KernelView];
      const carries = hasCarries ? (views[1] as KernelView) : undefined;
      const sum = (a: number, b: number): number => (isFloat ? a + b : (a + b) | 0);
      const stored = (h: number): number => (domain === "uint32" ? h >>> 0 : h);
      const step = isReverse ? -1 : 1;
      for (let chunk = 0; chunk * chunkSize < level.count; chunk++) {
        const start = chunk * chunkSize;
        const end = Math.min(start + chunkSize, level.count);
        let carry = carries?.[chunk - step] ?? 0;
        let h = 0;
        for (let k = isReverse ? end - 1 : start; k >= start && k < end; k += step) {
          if (rowBegins(direction, k, level)) {
            h = 0;
            carry = 0;
          }
          h = sum(h, x[k] as number);
          if (!isTotal) y[k] = stored(sum(carry, h));
        }
        if (isTotal) y[chunk] = stored(h);
      }
    },
  });
}

const parts = (direction: Direction, domain: Domain): Readonly<Record<Part, Kernel>> => ({
  totals: makeKernel("totals", direction, domain),
  sums: makeKernel("sums", direction, domain),
  onlySums: makeKernel("onlySums", direction, domain),
});

const ofDomain = (domain: Domain) => ({
  forward: parts("forward", domain),
  reverse: parts("reverse", domain),
});

const kernels = {
  float: ofDomain("float"),
  int32: ofDomain("int32"),
  uint32: ofDomain("uint32"),
};
