import type { Binding, DType, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { infinityOf, magnitudesWgsl } from "../wgsl/magnitudes.js";

/** The code where every element is finite: 0, as in new memory. */
export const nothingFound = 0;

/** Codes count down, so that the first element has the largest. */
const largestCode = 0xffff_ffff;

/** Quads that one invocation checks. */
const quadsEach = 8;
const groupSize = 64;

const kernel = defineKernel({
  name: "find-non-finite",
  bindings: [
    { name: "x", access: "read" },
    { name: "found", access: "readwrite", unit: 1, atomic: true, dtypes: ["uint32"] },
  ],
  scalars: [
    { name: "count", type: "u32" },
    { name: "slot", type: "u32", runtime: true },
  ],
  body: ({ bindings: [x] }) => `${magnitudesWgsl("x", x as { dtype: DType })}
${linearMain(groupSize)}
  let first = index % ${groupSize}u + index / ${groupSize}u * ${groupSize * quadsEach}u;
  let infinity = vec4u(${infinityOf(x as { dtype: DType })});
  // CPU adapters are slower where they unroll: this loop has no length that is known.
  let end = min(first + ${groupSize * quadsEach}u, (s.count + 3u) / 4u);
  for (var q = first; q < end; q += ${groupSize}u) {
    let a = magnitudes_x(q);
    let element = vec4u(q * 4u) + vec4u(0u, 1u, 2u, 3u);
    let bad = (a >= infinity) & (element < vec4u(s.count));
    if (!any(bad)) { continue; }
    let code = ${largestCode}u - (element * 2u + vec4u(a > infinity));
    let found = select(vec4u(), code, bad);
    max_found(s.slot, max(max(found.x, found.y), max(found.z, found.w)));
  }
}
`,
  workgroups: ({ count }) =>
    linearWorkgroups(Math.ceil((count as number) / 4), groupSize * quadsEach),
  reference([x, found], { slot }) {
    const words = found as KernelView;
    const element = x?.findIndex((value) => !Number.isFinite(value)) ?? -1;
    if (element < 0) return;
    const code = largestCode - (element * 2 + Number(Number.isNaN(x?.[element])));
    words[slot as number] = Math.max(words[slot as number] as number, code);
  },
});

/**
 * Finds the first element of `x` that is ±infinity or NaN, tested on bits, and raises the uint32 `found[slot]` to a code for
 * it, which {@link decodeFound} decodes. Start from `nothingFound`. Exact for lengths below 2^31.
 */
export function findNonFinite<B>(
  operands: { readonly x: Binding<B>; readonly found: Binding<B> },
  slot: number,
): Launch<B> {
  const { x, found } = operands;
  return { kernel, bindings: [x, found], scalars: { count: x.length, slot } };
}

/** Decodes the result of {@link findNonFinite}: the index and kind of the element, or undefined. */
export function decodeFound(
  code: number,
): { readonly element: number; readonly kind: "infinity" | "nan" } | undefined {
  if (code === nothingFound) return undefined;
  const down = largestCode - code;
  return { element: Math.floor(down / 2), kind: down % 2 === 1 ? "nan" : "infinity" };
}
