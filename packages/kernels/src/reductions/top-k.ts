import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { anyDType } from "../copies/value-type.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths, requireTarget } from "../operands.js";
import { scratch } from "../scratch.js";
import { comparing, inBothOrders, keyOf, type Order } from "./order.js";
import { sortColumns } from "./sort-columns.js";

/** The rows and the options of a selection. */
export interface TopKAttributes {
  readonly rows: number;
  readonly columns: number;
  /** Number of elements of each row, 1 to `columns`. */
  readonly k: number;
  /** True for the largest elements, false for the smallest. Default true. */
  readonly largest?: boolean;
  /** True orders the results best first, false by their columns. Default true. */
  readonly sorted?: boolean;
}

/**
 * out[rows, k] (uint32) = the columns of the k largest (or smallest) elements of each row of input[rows, columns], floats or integers. Ties go to the
 * first columns, which also come first. NaN counts as larger than every number, as in torch; -0 equals 0.
 *
 * Long rows are divided into chunks, from each of which the k best are selected, until one chunk remains: a launch for each round.
 * Then they are sorted.
 */
export function topK<B>(
  target: LaunchTarget<B>,
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  attributes: TopKAttributes,
): void {
  requireTarget("topK", target);
  const { input, out } = operands;
  const { rows, columns, k, largest = true, sorted = true } = attributes;
  if (!(Number.isInteger(k) && k >= 1 && k <= columns))
    throw new RangeError(`topK: k is ${k}; rows of ${columns} columns need 1 to ${columns}`);
  requireLengths("topK", { input, out }, { input: rows * columns, out: rows * k });
  const order = largest ? "largest" : "smallest";
  if (sorted && k === columns) {
    sortColumns(target, { input, out }, { rows, columns, count: k, order });
    return;
  }
  const integers = (length: number): Binding<B> => scratch(target, length, "uint32");
  const chunk = Math.max(chunkSize, 4 * k);
  let from: Binding<B> | undefined;
  let count = columns;
  do {
    const chunks = Math.ceil(count / chunk);
    const kept = (chunks - 1) * k + Math.min(k, count - (chunks - 1) * chunk);
    const isLast = kept === k;
    const next = isLast && !sorted ? out : integers(rows * kept);
    target.launch({
      kernel: selecting[order][from ? "listed" : "all"],
      bindings: from ? [input, from, next] : [input, next],
      scalars: { rows, columns, count, chunk, chunks, kept, k },
    });
    from = next;
    count = kept;
  } while (count > k);
  if (sorted) sortColumns(target, { input, listed: from, out }, { rows, columns, count: k, order });
}

/** Elements that one invocation selects from, unless k asks for more. */
const chunkSize = 1024;

/** Up to this k, the best keys are found one by one. */
const fewBest = 10;

/**
 * next = the columns of the k best of each chunk of `count` candidates a row, in their original order. The k-th best key is found
 * from the best downwards, or two bits at a time, by counting the keys that are not below it. Keys above it are selected, and of
 * the equal ones the first.
 */
const select = (order: Order, candidates: "all" | "listed"): Kernel =>
  defineKernel({
    name: "topKSelect",
    variant: `${order}, ${candidates}`,
    bindings: [
      { name: "input", access: "read", unit: 1, dtypes: anyDType },
      ...(candidates === "listed"
        ? [{ name: "listed", access: "read", unit: 1, dtypes: ["uint32"] } as const]
        : []),
      { name: "next", access: "write", unit: 1, dtypes: ["uint32"] },
    ],
    scalars: ["rows", "columns", "count", "chunk", "chunks", "kept", "k"].map((name) => ({
      name,
      type: "u32",
    })),
    body(context) {
      const { bits, code } = keyOf(order, context);
      const column = candidates === "listed" ? "at_listed(row * s.count + i)" : "i";
      return `${code}${linearMain()}
  if (index >= s.rows * s.chunks) { return; }
  let row = index / s.chunks;
  let part = index % s.chunks;
  let start = part * s.chunk;
  let end = min(start + s.chunk, s.count);
  let keep = min(s.k, end - start);
  var at = row * s.kept + part * s.k;
  var bound = 0u;
  var above = 0u;
  if (keep < end - start) {
    if (s.k <= ${fewBest}u) {
      var is_first = true;
      loop {
        var best = 0u;
        var equal = 0u;
        for (var i = start; i < end; i++) {
          let own = key(at_input(row * s.columns + ${column}));
          let is_below = is_first | (own < bound);
          let is_better = is_below & ((equal == 0u) | (own > best));
          equal = select(equal + u32(is_below & (own == best)), 1u, is_better);
          best = select(best, own, is_better);
        }
        bound = best;
        is_first = false;
        if (above + equal >= keep) { break; }
        above += equal;
      }
    } else {
      for (var shift = ${bits}u; shift > 0u; ) {
        shift -= 2u;
        let one = bound + (1u << shift);
        let two = bound + (2u << shift);
        let three = bound + (3u << shift);
        var counts = vec3u(0u);
        for (var i = start; i < end; i++) {
          let own = key(at_input(row * s.columns + ${column}));
          counts += select(vec3u(0u), vec3u(1u), vec3u(own) >= vec3u(one, two, three));
        }
        if (counts.z >= keep) { bound = three; }
        else if (counts.y >= keep) { bound = two; above = counts.z; }
        else if (counts.x >= keep) { bound = one; above = counts.y; }
        else { above = counts.x; }
      }
    }
  }
  // With everything kept all are equals of a bound that none is below.
  var equals = keep - above;
  let isAll = keep == end - start;
  for (var i = start; i < end; i++) {
    let c = ${column};
    let own = key(at_input(row * s.columns + c));
    let isEqual = (own == bound) & (equals > 0u);
    if (isAll | (own > bound) | isEqual) {
      store_next(at, c);
      at++;
      if (isEqual) { equals--; }
    }
  }
}
`;
    },
    workgroups: ({ rows, chunks }) => linearWorkgroups((rows as number) * (chunks as number)),
    reference(views, scalars) {
      const { rows, columns, count, chunk, kept, k } = scalars as Record<string, number> & {
        rows: number;
        columns: number;
        count: number;
        chunk: number;
        kept: number;
        k: number;
      };
      const [input, next] = [views[0], views.at(-1)] as [KernelView, KernelView];
      const listed = candidates === "listed" ? (views[1] as KernelView) : undefined;
      for (let r = 0; r < rows; r++) {
        const compare = comparing(input, r * columns, order);
        let at = r * kept;
        for (let start = 0; start < count; start += chunk) {
          const all = Array.from({ length: Math.min(chunk, count - start) }, (_, i) =>
            listed ? (listed[r * count + start + i] as number) : start + i,
          );
          const best = all.sort(compare).slice(0, k);
          for (const column of best.sort((a, b) => a - b)) next[at++] = column;
        }
      }
    },
  });

const selecting = inBothOrders((order) => ({
  all: select(order, "all"),
  listed: select(order, "listed"),
}));
