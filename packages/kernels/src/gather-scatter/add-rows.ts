import type {
  Binding,
  Kernel,
  KernelBinding,
  KernelView,
  Launch,
  LaunchTarget,
} from "@halfstep/device";
import { type Domain, domainOf, dtypesOf, quadType, scalarType } from "../domain.js";
import { defineKernel, defineWovenKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths, requireTarget } from "../operands.js";
import { scratch } from "../scratch.js";
import { byRowWalk, type RowWalk, rowWalk, unitOf } from "../wgsl/quad-units.js";
import { blockSize, sumBlocks } from "./block-sums.js";
import { sortIndices } from "./sort-indices.js";

/** Shapes of a sum of rows by index. */
export interface AddRowsAttributes {
  /** The source is a contiguous [outer, count, inner]. */
  readonly outer: number;
  readonly count: number;
  readonly inner: number;
  /** The result is [outer, size, inner]. */
  readonly size: number;
}

/**
 * out[outer, size, inner] = for each place of the middle axis the sum of the source's places with that index (uint32, [count]): the
 * gradient of an embedding. Sums are float32, in a fixed order, and need no atomics: the places are sorted by index (a stable sort), and
 * the segment of each index is added up in the order of the source. Of more than 4096 places, blocks that lie within one segment are
 * added up first. Indices that are not below `size` are ignored. Integers of 32 bits are added modulo 2^32.
 */
export function addRows<B>(
  target: LaunchTarget<B>,
  operands: { readonly index: Binding<B>; readonly source: Binding<B>; readonly out: Binding<B> },
  attributes: AddRowsAttributes,
): void {
  requireTarget("addRows", target);
  launchSegments(target, "addRows", operands, attributes);
}

/**
 * out[outer, size, inner] = base, with places of the middle axis replaced by the source's places with that index; the last of several
 * places wins. Segments are found as in {@link addRows}.
 */
export function putRows<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly index: Binding<B>;
    readonly base: Binding<B>;
    readonly source: Binding<B>;
    readonly out: Binding<B>;
  },
  attributes: AddRowsAttributes,
): void {
  requireTarget("putRows", target);
  launchSegments(target, "putRows", operands, attributes);
}

/**
 * Launches the functions above, and "addTo": out = base, with the source's places added to those that their indices name.
 */
export function launchSegments<B>(
  target: LaunchTarget<B>,
  op: Segments,
  {
    index,
    base,
    source,
    out,
  }: Readonly<Record<"index" | "source" | "out", Binding<B>>> & {
    readonly base?: Binding<B>;
  },
  { outer, count, inner, size }: AddRowsAttributes,
): void {
  const length = outer * size * inner;
  requireLengths(
    op,
    { index, base, source, out },
    { index: count, base: length, source: outer * count * inner, out: length },
  );
  const order = sortIndices(target, index, size);
  const starts = scratch(target, size + 1, "uint32");
  target.launch({
    kernel: segmentStarts,
    bindings: [index, order, starts],
    scalars: { count, size },
  });
  const walk = rowWalk(inner);
  const domain = domainOf(out.dtype);
  const scalars = { length, size, inner: inner / unitOf(walk), count };
  const rest = [...(base ? [base] : []), source, out];
  const block = op === "putRows" ? undefined : blockSize(count);
  if (op === "putRows" || block === undefined) {
    const kernel = segmentKernels[domain][op][walk];
    target.launch({ kernel, bindings: [starts, order, ...rest], scalars });
    return;
  }
  const sums = sumBlocks(target, { index, order, source }, { outer, count, inner, size, block });
  target.launch({
    kernel: blockKernels[domain][op][walk],
    bindings: [starts, order, sums, ...rest],
    scalars: { ...scalars, block },
  });
}

type Segments = "addRows" | "addTo" | "putRows";

const quadsPerWorkgroup = 512;

const integers = (name: string, access: "read" | "write"): KernelBinding => ({
  name,
  access,
  unit: 1,
  dtypes: ["uint32"],
});

/**
 * starts[size + 1] = for each key the first sorted place whose key is not below it; the last element is the number of valid places.
 */
const segmentStarts: Kernel = defineKernel({
  name: "segmentStarts",
  bindings: [integers("keys", "read"), integers("order", "read"), integers("starts", "write")],
  scalars: ["count", "size"].map((name) => ({ name, type: "u32" })),
  body: () => `${linearMain()}
  if (index > s.size) { return; }
  var low = 0u;
  var high = s.count;
  while (low < high) {
    let middle = (low + high) / 2u;
    if (at_keys(at_order(middle)) < index) { low = middle + 1u; } else { high = middle; }
  }
  store_starts(index, low);
}
`,
  workgroups: ({ size }) => linearWorkgroups((size as number) + 1),
  reference([keys, , starts], { size }) {
    const found = new Uint32Array((size as number) + 1);
    for (const key of keys as KernelView) {
      const next = Math.min(key, size as number) + 1;
      if (next < found.length) found[next] = (found[next] as number) + 1;
    }
    for (let place = 1; place < found.length; place++)
      found[place] = (found[place] as number) + (found[place - 1] as number);
    (starts as KernelView).set(found);
  },
});

/** Whether a kernel adds places one by one, or takes the sums of the blocks that a segment holds. */
type Terms = "places" | "blocks";

function makeKernel(op: Segments, walk: RowWalk, domain: Domain, terms: Terms = "places"): Kernel {
  const isFloat = domain === "float";
  const dtypes = dtypesOf(domain);
  const isGather = walk === "gather";
  const load = isGather ? "at" : "load";
  const adds = op !== "putRows";
  const hasBase = op !== "addRows";
  const inBlocks = terms === "blocks";
  const stored = isGather
    ? `${quadType(domain)}(${[0, 1, 2, 3].map((l) => `total(q * 4u + ${l}u)`).join(", ")})`
    : "total(q)";
  return defineWovenKernel({
    name: adds ? "addSegments" : "putSegments",
    ...(isFloat && { epilogue: "store" }),
    factors: 5,
    variant: `${walk}${adds && hasBase ? ",base" : ""}${isFloat ? "" : `,${domain}`}${inBlocks ? ",blocks" : ""}`,
    bindings: [
      integers("starts", "read"),
      integers("order", "read"),
      ...(inBlocks ? [{ name: "sums", access: "read", dtypes } as const] : []),
      ...(hasBase ? [{ name: "base", access: "read", dtypes } as const] : []),
      { name: "source", access: "read", dtypes },
      { name: "out", access: "write", dtypes },
    ],
    scalars: ["length", "size", "inner", "count", ...(inBlocks ? ["block"] : [])].map((name) => ({
      ...{ name, type: "u32" as const },
    })),
    // Sums have 32 bits.
    streams: (_, name) => walk === "pairs" && !["starts", "order", "sums"].includes(name),
    body(_context, _woven, quads = 1) {
      const inPairs = quads === 2;
      const quad = isGather ? scalarType(domain) : quadType(domain);
      const inner = inPairs ? "(s.inner / 2u)" : "s.inner";
      const from = (m: string): string =>
        `${load}_source((start + at_order(${m})) * ${inner} + e % ${inner})`;
      const blockSum = (place: string): string => {
        const at = `(${place}) * ${inner} + e % ${inner}`;
        return inPairs
          ? `mat2x4f(load_sums((${at}) * 2u), load_sums((${at}) * 2u + 1u))`
          : `${load}_sums(${at})`;
      };
      const zero = inPairs ? "mat2x4f()" : `${quad}(0${isFloat ? ".0" : ""})`;
      return `
fn total(e: u32) -> ${inPairs ? "mat2x4f" : quad} {
  let place = e / ${inner} % s.size;
  let start = e / ${inner} / s.size * s.count;
  let first = at_starts(place);
  let end = at_starts(place + 1u);
${
  adds
    ? `  var sum = ${hasBase ? `${load}_base(e)` : zero};
${
  inBlocks
    ? `  let block = (first + s.block - 1u) / s.block;
  let blocks = max(block, end / s.block);
  let head = select(block * s.block, end, block == blocks);
  for (var m = first; m < head; m++) { sum += ${from("m")}; }
  let row = e / ${inner} / s.size * (s.count / s.block);
  for (var b = block; b < blocks; b++) { sum += ${blockSum("row + b")}; }
  for (var m = max(head, blocks * s.block); m < end; m++) { sum += ${from("m")}; }`
    : `  for (var m = first; m < end; m++) { sum += ${from("m")}; }`
}
  return sum;`
    : `  if (first == end) { return ${load}_base(e); }
  return ${from("end - 1u")};`
}
}
${linearMain()}
  // Several quads an invocation: on software adapters starting one costs more than a quad.
  let stride = groups.x * groups.y * 64u;
  for (var q = index; q * ${4 * quads}u < s.length; q += stride) { store_out(q, ${stored}); }
}
`;
    },
    workgroups: ({ length }) =>
      linearWorkgroups(Math.ceil((length as number) / 4), quadsPerWorkgroup),
    reference(views, scalars) {
      const [first, places] = views as [KernelView, KernelView];
      const [x, y] = views.slice(-2) as [KernelView, KernelView];
      const { size, count } = scalars as { size: number; count: number };
      const inner = (scalars.inner as number) * unitOf(walk);
      const outer = y.length / (size * inner);
      const results = hasBase
        ? Float64Array.from(views.at(-3) as KernelView)
        : new Float64Array(y.length);
      for (let o = 0; o < outer; o++)
        for (let place = 0; place < size; place++)
          for (let m = first[place] as number; m < (first[place + 1] as number); m++) {
            const from = (o * count + (places[m] as number)) * inner;
            const to = (o * size + place) * inner;
            for (let i = 0; i < inner; i++) {
              const sum = (adds ? (results[to + i] as number) : 0) + (x[from + i] as number);
              results[to + i] = isFloat ? sum : sum | 0;
            }
          }
      y.set(results);
    },
  });
}

const ofDomain = (domain: Domain) => ({
  addRows: byRowWalk((walk) => makeKernel("addRows", walk, domain)),
  addTo: byRowWalk((walk) => makeKernel("addTo", walk, domain)),
  putRows: byRowWalk((walk) => makeKernel("putRows", walk, domain)),
});

const segmentKernels = {
  float: ofDomain("float"),
  int32: ofDomain("int32"),
  uint32: ofDomain("uint32"),
} as const;

const inBlocks = (domain: Domain) => ({
  addRows: byRowWalk((walk) => makeKernel("addRows", walk, domain, "blocks")),
  addTo: byRowWalk((walk) => makeKernel("addTo", walk, domain, "blocks")),
});

const blockKernels = {
  float: inBlocks("float"),
  int32: inBlocks("int32"),
  uint32: inBlocks("uint32"),
} as const;

/** A sum of float rows by index: the places of the result, and the segments of sorted indices that the launch adds up. */
export interface RowSum<B> {
  readonly starts: Binding<B>;
  /** [count, width] */
  readonly rows: Binding<B>;
  /** [places, width] */
  readonly sum: Binding<B>;
}

/** The operands of a launch that sums float rows, each of contiguous numbers, as {@link addRows} does; undefined for other launches. */
export function rowSumOf<B>({ kernel, bindings, scalars }: Launch<B>): RowSum<B> | undefined {
  const families = [segmentKernels.float.addRows, blockKernels.float.addRows];
  const walks = ["pairs", "quads", "gather"] as const;
  const walk = walks.find((each) => families.some((family) => family[each] === kernel));
  if (!walk) return undefined;
  const { length, size, inner } = scalars as Readonly<Record<"length" | "size" | "inner", number>>;
  const [starts] = bindings as [Binding<B>];
  const [rows, sum] = bindings.slice(-2) as [Binding<B>, Binding<B>];
  const width = inner * unitOf(walk);
  return length === size * width ? { starts, rows, sum } : undefined;
}

/** The indices of which a launch finds the `starts` of a {@link RowSum}; undefined for other launches. */
export const segmentedIndex = <B>({ kernel, bindings }: Launch<B>): Binding<B> | undefined =>
  kernel === segmentStarts ? bindings[0] : undefined;
