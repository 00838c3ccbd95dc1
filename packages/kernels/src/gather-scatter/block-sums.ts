import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { type Domain, domainOf, dtypesOf, quadType, scalarType } from "../domain.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { scratch } from "../scratch.js";

/** Up to so many places, each index's are added one by one: sums have a relative error of 2⁻¹² at most, mostly far less. */
const fewPlaces = 4096;

/**
 * The places in a block of sorted ones: about the root of their number, so that neither blocks nor the blocks of an index are many. One
 * index may have nearly all places, as that of padding does. Undefined for few places.
 */
export const blockSize = (count: number): number | undefined =>
  count <= fewPlaces ? undefined : 2 ** Math.ceil(Math.log2(count) / 2);

/** Shapes of the sums of blocks: those of `addRows`, and the places in a block. */
interface BlockAttributes {
  readonly outer: number;
  readonly count: number;
  readonly inner: number;
  readonly size: number;
  readonly block: number;
}

/**
 * sums[outer, blocks, inner] = for each whole block of sorted places the sum of the source's places, where all have one index.
 * Other blocks' sums are not written.
 */
export function sumBlocks<B>(
  target: LaunchTarget<B>,
  operands: { readonly index: Binding<B>; readonly order: Binding<B>; readonly source: Binding<B> },
  { outer, count, inner, size, block }: BlockAttributes,
): Binding<B> {
  const { index, order, source } = operands;
  const domain = domainOf(source.dtype);
  const isQuads = inner % 4 === 0;
  const length = outer * Math.floor(count / block) * inner;
  const sums = scratch(target, length, domain === "float" ? "float32" : domain);
  target.launch({
    kernel: kernels[domain][isQuads ? "quads" : "elements"],
    bindings: [index, order, source, sums],
    scalars: { length, size, inner: isQuads ? inner / 4 : inner, count, block },
  });
  return sums;
}

type Unit = "quads" | "elements";

function makeKernel(unit: Unit, domain: Domain): Kernel {
  const isQuads = unit === "quads";
  const dtypes = dtypesOf(domain);
  const load = isQuads ? "load" : "at";
  const [type, width] = isQuads ? [quadType(domain), 4] : [scalarType(domain), 1];
  return defineKernel({
    name: "blockSums",
    variant: `${unit},${domain}`,
    bindings: [
      { name: "index", access: "read", unit: 1, dtypes: ["uint32"] },
      { name: "order", access: "read", unit: 1, dtypes: ["uint32"] },
      { name: "source", access: "read", dtypes },
      { name: "sums", access: "write", dtypes, ...(!isQuads && { unit: 1 as const }) },
    ],
    scalars: ["length", "size", "inner", "count", "block"].map((name) => ({ name, type: "u32" })),
    body: () => `${linearMain()}
  if (index * ${width}u >= s.length) { return; }
  let blocks = s.count / s.block;
  let block = index / s.inner;
  let first = block % blocks * s.block;
  let end = first + s.block;
  let key = at_index(at_order(first));
  if (key >= s.size || key != at_index(at_order(end - 1u))) { return; }
  let start = block / blocks * s.count;
  var sum = ${type}(0);
  for (var m = first; m < end; m++) { sum += ${load}_source((start + at_order(m)) * s.inner + index % s.inner); }
  store_sums(index, sum);
}
`,
    workgroups: ({ length }) => linearWorkgroups(Math.ceil((length as number) / width)),
    reference([keys, order, source, sums], scalars) {
      const [key, place, x, y] = [keys, order, source, sums] as [
        KernelView,
        KernelView,
        KernelView,
        KernelView,
      ];
      const { length, size, count, block } = scalars as Readonly<
        Record<"length" | "size" | "count" | "block", number>
      >;
      const inner = (scalars.inner as number) * width;
      const blocks = Math.floor(count / block);
      const keyAt = (m: number): number => key[place[m] as number] as number;
      for (let e = 0; e < length; e++) {
        const at = Math.floor(e / inner);
        const first = (at % blocks) * block;
        if (keyAt(first) >= size || keyAt(first) !== keyAt(first + block - 1)) continue;
        const start = Math.floor(at / blocks) * count;
        let sum = 0;
        for (let m = first; m < first + block; m++) {
          const value = x[(start + (place[m] as number)) * inner + (e % inner)] as number;
          sum = domain === "float" ? sum + value : (sum + value) | 0;
        }
        y[e] = sum;
      }
    },
  });
}

const ofDomain = (domain: Domain) => ({
  quads: makeKernel("quads", domain),
  elements: makeKernel("elements", domain),
});

const kernels = {
  float: ofDomain("float"),
  int32: ofDomain("int32"),
  uint32: ofDomain("uint32"),
};
