import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { anyDType } from "../copies/value-type.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { scratch } from "../scratch.js";
import { comparing, inBothOrders, keyOf, type Order } from "./order.js";

/** Elements that are compared with each other at first. */
const runLength = 256;

/**
 * out[rows, count] (uint32) = columns of each row of input[rows, columns], those that come first in the order first: the columns `listed`,
 * which ascend, or all. Runs of 256 are sorted by counting, then merged two by two: each element finds its place in the other run by
 * bisection, so that lines of n take n · log² n comparisons.
 */
export function sortColumns<B>(
  target: LaunchTarget<B>,
  {
    input,
    listed,
    out,
  }: { readonly input: Binding<B>; readonly listed?: Binding<B>; readonly out: Binding<B> },
  {
    rows,
    columns,
    count,
    order,
  }: {
    readonly rows: number;
    readonly columns: number;
    readonly count: number;
    readonly order: Order;
  },
): void {
  const place = (isLast: boolean): Binding<B> =>
    isLast ? out : scratch(target, rows * count, "uint32");
  let from = place(count <= runLength);
  target.launch({
    kernel: runs[order][listed ? "listed" : "all"],
    bindings: listed ? [input, listed, from] : [input, from],
    scalars: { rows, columns, count },
  });
  for (let run = runLength; run < count; run *= 2) {
    const next = place(2 * run >= count);
    target.launch({
      kernel: merges[order],
      bindings: [input, from, next],
      scalars: { rows, columns, count, run },
    });
    from = next;
  }
}

const uint32s = (name: string, access: "read" | "write") =>
  ({ name, access, unit: 1, dtypes: ["uint32"] }) as const;

const head = (condition: string): string => `${linearMain()}
  if (index >= s.rows * s.count) { return; }
  let row = index / s.count;
  let first = row * s.count;
  let base = row * s.columns;
  let i = index - first;
${condition}`;

/** Sorts each run of columns: the place of each in its run is the number of those that come before it. */
const sortRuns = (order: Order, candidates: "all" | "listed"): Kernel =>
  defineKernel({
    name: "sortRuns",
    variant: `${order}, ${candidates}`,
    bindings: [
      { name: "input", access: "read", unit: 1, dtypes: anyDType },
      ...(candidates === "listed" ? [uint32s("listed", "read")] : []),
      uint32s("out", "write"),
    ],
    scalars: ["rows", "columns", "count"].map((name) => ({ name, type: "u32" })),
    body(context) {
      const column = (i: string): string =>
        candidates === "listed" ? `at_listed(first + ${i})` : i;
      return `${keyOf(order, context).code}${head(`  let start = i / ${runLength}u * ${runLength}u;
  let end = min(start + ${runLength}u, s.count);
  let column = ${column("i")};
  let own = key(at_input(base + column));
  var before = 0u;
  for (var j = start; j < end; j++) {
    let other = key(at_input(base + ${column("j")}));
    before += select(0u, 1u, (other > own) | ((other == own) & (j < i)));
  }
  store_out(first + start + before, column);
}
`)}`;
    },
    workgroups: ({ rows, count }) => linearWorkgroups((rows as number) * (count as number)),
    reference(views, scalars) {
      const { rows, columns, count } = scalars as Sizes;
      const [input, out] = [views[0], views.at(-1)] as [KernelView, KernelView];
      if (candidates === "listed") out.set(views[1] as KernelView);
      else for (let i = 0; i < rows * count; i++) out[i] = i % count;
      sortParts(input, out, { rows, columns, count, length: runLength, order });
    },
  });

/** Merges pairs of sorted runs: an element moves on by the number of those of the other run that come before it. */
const mergeRuns = (order: Order): Kernel =>
  defineKernel({
    name: "mergeRuns",
    variant: order,
    bindings: [
      { name: "input", access: "read", unit: 1, dtypes: anyDType },
      uint32s("sorted", "read"),
      uint32s("out", "write"),
    ],
    scalars: ["rows", "columns", "count", "run"].map((name) => ({ name, type: "u32" })),
    body: (context) =>
      `${keyOf(order, context).code}${head(`  let start = i / (2u * s.run) * (2u * s.run);
  let middle = min(start + s.run, s.count);
  let is_right = i >= middle;
  var low = select(middle, start, is_right);
  var high = select(min(start + 2u * s.run, s.count), middle, is_right);
  let others = low;
  let column = at_sorted(index);
  let own = key(at_input(base + column));
  while (low < high) {
    let at = (low + high) / 2u;
    let other = key(at_input(base + at_sorted(first + at)));
    // Of equal elements those of the left run come first.
    if ((other > own) | ((other == own) & is_right)) { low = at + 1u; } else { high = at; }
  }
  let place = select(i, i - (middle - start), is_right) + (low - others);
  store_out(first + place, column);
}
`)}`,
    workgroups: ({ rows, count }) => linearWorkgroups((rows as number) * (count as number)),
    reference([input, sorted, out], scalars) {
      const { rows, columns, count, run } = scalars as Sizes & { readonly run: number };
      (out as KernelView).set(sorted as KernelView);
      sortParts(input as KernelView, out as KernelView, {
        rows,
        columns,
        count,
        length: 2 * run,
        order,
      });
    },
  });

interface Sizes extends Readonly<Record<string, number>> {
  readonly rows: number;
  readonly columns: number;
  readonly count: number;
}

/** Sorts each part of so many columns of each row, in place. */
function sortParts(
  input: KernelView,
  out: KernelView,
  {
    rows,
    columns,
    count,
    length,
    order,
  }: {
    readonly rows: number;
    readonly columns: number;
    readonly count: number;
    readonly length: number;
    readonly order: Order;
  },
): void {
  for (let r = 0; r < rows; r++) {
    const compare = comparing(input, r * columns, order);
    for (let start = 0; start < count; start += length) {
      const end = Math.min(start + length, count);
      const part = Array.from(out.subarray(r * count + start, r * count + end));
      out.set(part.sort(compare), r * count + start);
    }
  }
}

const runs = inBothOrders((order) => ({
  all: sortRuns(order, "all"),
  listed: sortRuns(order, "listed"),
}));
const merges = inBothOrders(mergeRuns);
