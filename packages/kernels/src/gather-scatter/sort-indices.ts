import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { scan } from "../reductions/scan.js";
import { scratch } from "../scratch.js";

/** Up to this many keys, comparing all with all is faster than the launches of a radix sort. */
const fewKeys = 2048;

/** Elements that one invocation of the radix sort counts and places. */
const blockSize = 64;
const digits = 16;

/**
 * The places of uint32 keys, sorted by key; equal ones stay in order. Keys from `size` on count as `size`. Deterministic and
 * without atomics: few keys are compared pairwise; more are sorted by a radix sort of four bits at a time, with an
 * invocation for each block.
 */
export function sortIndices<B>(
  target: LaunchTarget<B>,
  keys: Binding<B>,
  size: number,
): Binding<B> {
  const count = keys.length;
  const integers = (length: number): Binding<B> => scratch(target, length, "uint32");
  if (count <= fewKeys) {
    const order = integers(count);
    target.launch({ kernel: compare, bindings: [keys, order], scalars: { count, size } });
    return order;
  }
  const blocks = Math.ceil(count / blockSize);
  let order: Binding<B> | undefined;
  for (let shift = 0; shift === 0 || size >= 2 ** shift; shift += 4) {
    const scalars = { count, size, shift, blocks, isFirst: order ? 0 : 1 };
    // The first round uses the places in order, and reads no `order`.
    const from = order ?? keys;
    const [counts, ends, next] = [
      integers(digits * blocks),
      integers(digits * blocks),
      integers(count),
    ];
    target.launch({ kernel: countDigits, bindings: [keys, from, counts], scalars });
    // Counts are ordered by digit, then by block, as the elements will be.
    scan(target, { input: counts, out: ends }, { op: "sum", rows: 1, columns: digits * blocks });
    target.launch({ kernel: placeDigits, bindings: [keys, from, counts, ends, next], scalars });
    order = next;
  }
  return order as Binding<B>;
}

const read = (name: string) => ({ name, access: "read", unit: 1, dtypes: ["uint32"] }) as const;
const write = (name: string) => ({ name, access: "write", unit: 1, dtypes: ["uint32"] }) as const;

const compare: Kernel = defineKernel({
  name: "sortByComparing",
  bindings: [{ name: "keys", access: "read", dtypes: ["uint32"] }, write("order")],
  scalars: ["count", "size"].map((name) => ({ name, type: "u32" })),
  body: () => `${linearMain()}
  if (index >= s.count) { return; }
  let own = vec4u(min(at_keys(index), s.size));
  var before = vec4u(0u);
  for (var q = 0u; q * 4u < s.count; q++) {
    let key = min(load_keys(q), vec4u(s.size));
    let k = vec4u(q * 4u) + vec4u(0u, 1u, 2u, 3u);
    let isBefore = (key < own) | ((key == own) & (k < vec4u(index)));
    before += select(vec4u(0u), vec4u(1u), isBefore & (k < vec4u(s.count)));
  }
  store_order(before.x + before.y + before.z + before.w, index);
}
`,
  workgroups: ({ count }) => linearWorkgroups(count as number),
  reference([keys, order], { size }) {
    const key = (k: number): number => Math.min((keys as KernelView)[k] as number, size as number);
    const places = Array.from(keys as KernelView, (_, k) => k);
    (order as KernelView).set(places.sort((a, b) => key(a) - key(b) || a - b));
  },
});

const radixScalars = ["count", "size", "shift", "blocks", "isFirst"].map((name) => ({
  name,
  type: "u32" as const,
}));

type RadixScalars = Readonly<Record<"count" | "size" | "shift" | "blocks" | "isFirst", number>>;

/** WGSL: runs `each` for the elements of a block, with `k` their place and `d` their digit. */
const overBlock = (each: string): string => `
  let end = min((index + 1u) * ${blockSize}u, s.count);
  for (var e = index * ${blockSize}u; e < end; e++) {
    var k = e;
    if (s.isFirst == 0u) { k = at_order(e); }
    let d = (min(at_keys(k), s.size) >> s.shift) & 15u;
    ${each}
  }
`;

function eachDigit(
  keys: KernelView,
  order: KernelView,
  { count, size, shift, isFirst }: RadixScalars,
  visit: (block: number, digit: number, place: number) => void,
): void {
  for (let e = 0; e < count; e++) {
    const k = isFirst === 1 ? e : (order[e] as number);
    const digit = (Math.min(keys[k] as number, size) >>> shift) & 15;
    visit(Math.floor(e / blockSize), digit, k);
  }
}

/** counts[digit, block] = how many elements of the block have the digit. */
const countDigits: Kernel = defineKernel({
  name: "countDigits",
  bindings: [read("keys"), read("order"), write("counts")],
  scalars: radixScalars,
  body: () => `${linearMain()}
  if (index >= s.blocks) { return; }
  var counts: array<u32, ${digits}>;
${overBlock("counts[d] += 1u;")}  for (var d = 0u; d < ${digits}u; d++) { store_counts(d * s.blocks + index, counts[d]); }
}
`,
  workgroups: ({ blocks }) => linearWorkgroups(blocks as number),
  reference([keys, order, counts], scalars) {
    const table = counts as KernelView;
    const values = scalars as RadixScalars;
    table.fill(0);
    eachDigit(keys as KernelView, order as KernelView, values, (block, digit) => {
      const at = digit * values.blocks + block;
      table[at] = (table[at] as number) + 1;
    });
  },
});

/** next = the places in the order of their digits. */
const placeDigits: Kernel = defineKernel({
  name: "placeDigits",
  bindings: [read("keys"), read("order"), read("counts"), read("ends"), write("next")],
  scalars: radixScalars,
  body: () => `${linearMain()}
  if (index >= s.blocks) { return; }
  var starts: array<u32, ${digits}>;
  for (var d = 0u; d < ${digits}u; d++) {
    let part = d * s.blocks + index;
    starts[d] = at_ends(part) - at_counts(part);
  }
${overBlock("store_next(starts[d], k);\n    starts[d] += 1u;")}}
`,
  workgroups: ({ blocks }) => linearWorkgroups(blocks as number),
  reference([keys, order, counts, ends, next], scalars) {
    const values = scalars as RadixScalars;
    const places = Array.from(
      ends as KernelView,
      (end, part) => end - ((counts as KernelView)[part] as number),
    );
    eachDigit(keys as KernelView, order as KernelView, values, (block, digit, place) => {
      const at = digit * values.blocks + block;
      (next as KernelView)[places[at] as number] = place;
      places[at] = (places[at] as number) + 1;
    });
  },
});
