import type { Binding, Kernel, KernelView, Launch, ProgramContext } from "@halfstep/device";
import { toInteger } from "@halfstep/formats/dtypes";
import { isCpu } from "../cpu-adapter.js";
import { type Domain, domainOf, scalarType } from "../domain.js";
import { defineWovenKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths, requireSameKind } from "../operands.js";
import { anyDType, valueType } from "./value-type.js";
import type { Walk } from "./walk.js";

/** One dimension of a result that is read from an input. */
export interface CopiedDimension {
  readonly size: number;
  /** Elements of the input between neighbours: negative to walk backwards, 0 to repeat. */
  readonly stride: number;
  /** The places from `from` up to `to` are read, and the others filled. Default: all are read. */
  readonly from?: number;
  readonly to?: number;
}

/** The mapping from elements of the result to elements of the input. */
export interface StridedCopyAttributes {
  /** Outermost first. */
  readonly dimensions: readonly CopiedDimension[];
  /** The element of the input at the place of all zeros, whether it is read or not. Default 0. */
  readonly offset?: number;
  /** The value at places that are not read; integers saturate. Default 0. */
  readonly fill?: number;
}

/**
 * out = elements of the input, addressed by strides: slices, permutations, flips, padding and repetition in one kernel, for every
 * dtype.
 *
 * @throws RangeError where the result has another length than the dimensions, or a place outside of the input is read. TypeError where
 * integers would become floats, or the other way around.
 */
export function stridedCopy<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  { dimensions, offset = 0, fill = 0 }: StridedCopyAttributes,
): Launch<B> {
  const count = dimensions.reduce((product, { size }) => product * size, 1);
  requireLengths("stridedCopy", { out: operands.out }, { out: count });
  requireSameKind("stridedCopy", [operands.input], operands.out);
  const merged = merge(dimensions);
  if (count > 0) requireInside(merged, offset, operands.input.length);
  const isPadded = merged.some(({ size, from, to }) => from > 0 || to < size);
  const unit = isContiguous(merged, offset, 4) ? 4 : 1;
  const scalars: Record<string, number> = { count, offset: offset / unit };
  for (let d = 0; d < merged.length; d++) {
    const { size, stride, from, to } = merged[d] as Walked;
    const isLast = d === merged.length - 1;
    const own = isLast ? unit : 1;
    scalars[`size${d}`] = size / own;
    scalars[`stride${d}`] = isLast ? stride : stride / unit;
    if (!isPadded) continue;
    scalars[`from${d}`] = from / own;
    scalars[`to${d}`] = to / own;
  }
  const filled = isPadded ? domainOf(operands.out.dtype) : undefined;
  if (filled) scalars.fill = filled === "float" ? fill : toInteger(filled, fill);
  return {
    kernel: kernelOf({
      rank: merged.length,
      unit,
      filled,
      byRows: lastOf(merged).size % 4 === 0,
      hasPairs: isContiguous(merged, offset, 8),
    }),
    bindings: [operands.input, operands.out],
    scalars,
  };
}

/** The first element that a launch copies, where it copies a contiguous range; undefined for other launches. */
export function contiguousStart({ kernel, scalars }: Launch<unknown>): number | undefined {
  if (!isStridedCopy(kernel)) return undefined;
  const { rank, unit, filled } = kernel.copies;
  return rank === 1 && unit === 4 && !filled ? (scalars.offset as number) * 4 : undefined;
}

/** The elements that a launch copies, in order; undefined for other launches, and for copies that fill places. */
export function copiedWalk({ kernel, scalars }: Launch<unknown>): Walk | undefined {
  if (!isStridedCopy(kernel) || kernel.copies.filled) return undefined;
  const { rank, unit } = kernel.copies;
  const dimensions = Array.from({ length: rank }, (_, d) => {
    const [size, stride] = [scalars[`size${d}`], scalars[`stride${d}`]] as [number, number];
    return d === rank - 1 ? { size: size * unit, stride } : { size, stride: stride * unit };
  });
  return { offset: (scalars.offset as number) * unit, dimensions };
}

type Walked = Required<CopiedDimension>;

/** The same walk with adjacent dimensions merged where possible. */
function merge(dimensions: readonly CopiedDimension[]): readonly Walked[] {
  const merged: Walked[] = [];
  for (const { size, stride, from = 0, to = size } of dimensions) {
    const isWhole = from <= 0 && to >= size;
    if (size === 1 && isWhole) continue;
    const inner = { size, stride, from: Math.max(from, 0), to: Math.min(to, size) };
    const outer = merged.at(-1);
    if (outer && isWhole && outer.stride === stride * size)
      merged[merged.length - 1] = {
        size: outer.size * size,
        stride,
        from: outer.from * size,
        to: outer.to * size,
      };
    else merged.push(inner);
  }
  return merged.length > 0 ? merged : [{ size: 1, stride: 0, from: 0, to: 1 }];
}

/** Throws a RangeError where the walk reads in front of the input's first element, or behind its last one. */
function requireInside(merged: readonly Walked[], offset: number, length: number): void {
  let [first, last] = [offset, offset];
  for (const { stride, from, to } of merged) {
    if (from >= to) return;
    const [start, end] = [stride * from, stride * (to - 1)];
    first += Math.min(start, end);
    last += Math.max(start, end);
  }
  if (!(first >= 0 && last < length))
    throw new RangeError(
      `stridedCopy reads elements ${first} to ${last} of an input of ${length}: check the offset and the strides`,
    );
}

const lastOf = (merged: readonly Walked[]): Walked => merged.at(-1) as Walked;

/** Whether rows stay contiguous in units of so many elements, which copies move whole. */
function isContiguous(merged: readonly Walked[], offset: number, unit: 4 | 8): boolean {
  const last = lastOf(merged);
  const isWhole = (n: number): boolean => n % unit === 0;
  return (
    last.stride === 1 &&
    [offset, last.size, last.from, last.to].every(isWhole) &&
    merged.slice(0, -1).every(({ stride }) => isWhole(stride))
  );
}

interface Variant {
  readonly rank: number;
  readonly unit: 1 | 4;
  /** The domain of the filled value, where some places are not read. */
  readonly filled: Domain | undefined;
  /** Whether no quad of the result spans two rows (of the last dimension). */
  readonly byRows: boolean;
  /** Whether rows stay contiguous in pairs of quads. Scalars count quads all the same. */
  readonly hasPairs: boolean;
}

/** A kernel of {@link stridedCopy}, in the form that passes recognise. */
interface StridedCopyKernel extends Kernel {
  readonly copies: Variant;
}

const isStridedCopy = (kernel: Kernel): kernel is StridedCopyKernel => "copies" in kernel;

const kernels = new Map<string, StridedCopyKernel>();

function kernelOf(variant: Variant): StridedCopyKernel {
  const { rank, unit, filled, byRows, hasPairs } = variant;
  const padding = filled === undefined ? "" : filled === "float" ? ",padded" : `,padded ${filled}`;
  const moved = hasPairs ? ",pairs" : unit === 4 ? ",quads" : byRows ? ",rows" : "";
  const key = `${rank}${moved}${padding}`;
  let kernel = kernels.get(key);
  if (!kernel) {
    kernel = { ...makeKernel(variant, key), copies: variant };
    kernels.set(key, kernel);
  }
  return kernel;
}

/**
 * Quads of a row, or pairs of them, that an invocation copies. Divisions are slow on CPUs, and each invocation divides once. On GPUs
 * neighbours copy neighbouring ones, so that they share lines of memory.
 */
const unitsEach = (context: Pick<ProgramContext, "hardware">): number => (isCpu(context) ? 16 : 1);

const quadsOfRow = (size: number, unit: number): number => (size * unit) / 4;

/** WGSL that maps the index `rest` of a place in the dimensions up to `last` to the index `at` in the input, and sets `inside`. */
function walk(last: number, isPadded: boolean): string {
  let code = "  var at = s.offset;\n  var inside = true;\n  var c = 0;\n";
  for (let d = last; d >= 0; d--) {
    code += d === 0 ? "  c = rest;\n" : `  c = rest % s.size${d};\n  rest /= s.size${d};\n`;
    code += `  at += c * s.stride${d};\n`;
    if (isPadded) code += `  inside = inside & ${isBetween("c", d)};\n`;
  }
  return code;
}

const isBetween = (c: string, d: number): string => `((${c} >= s.from${d}) & (${c} < s.to${d}))`;

function makeKernel({ rank, unit, filled, byRows, hasPairs }: Variant, variant: string): Kernel {
  const isPadded = filled !== undefined;
  const axes = Array.from({ length: rank }, (_, d) => d);
  const perAxis = isPadded ? ["size", "stride", "from", "to"] : ["size", "stride"];
  return defineWovenKernel({
    name: "stridedCopy",
    epilogue: "store",
    variant,
    bindings: [
      { name: "input", access: "read", dtypes: anyDType },
      { name: "out", access: "write", dtypes: anyDType },
    ],
    scalars: [
      { name: "count", type: "u32" },
      { name: "offset", type: "i32" },
      ...perAxis.flatMap((name) =>
        axes.map((d) => ({ name: `${name}${d}`, type: "i32" as const })),
      ),
      ...(filled ? [{ name: "fill", type: scalarType(filled), runtime: true }] : []),
    ],
    streams: () => hasPairs,
    body(context, woven, quads = 1) {
      const [from, to] = context.bindings;
      const scalar = valueType(to?.dtype);
      const last = rank - 1;
      if (!byRows) {
        const lanes = [0, 1, 2, 3].map((l) => `value(i32(index) * 4 + ${l})`).join(", ");
        return `
fn value(i: i32) -> ${scalar} {
  // Behind the last element there are zeros, as zeroBehind() tells why.
  if (u32(i) >= s.count) { return ${scalar}(); }
  var rest = i;
${walk(last, isPadded)}${isPadded ? `  if (!inside) { return ${scalar}(s.fill); }\n` : ""}  return at_input(u32(at));
}
${linearMain()}
  if (index * 4u >= s.count) { return; }
  store_out(index, vec4<${scalar}>(${lanes}));
}
`;
      }
      // Elements that are only moved keep their bits and need no conversion. Float32 never needs one.
      const isMoved =
        from?.dtype === to?.dtype &&
        to?.dtype !== "float32" &&
        !from?.rounding &&
        !to?.rounding &&
        !woven;
      const move = isMoved
        ? "out_data[q] = input_data[place];"
        : "store_out(q, load_input(place));";
      const fill = `${scalar}(s.fill)`;
      const filledUnit =
        quads === 1 ? `vec4<${scalar}>(${fill})` : `mat2x4f(vec4f(${fill}), vec4f(${fill}))`;
      // The unit of the input, and the first quad of unit j of the row.
      const [unitOfInput, firstQuad] =
        quads === 1 ? [`at + j * s.stride${last}`, "j"] : ["at / 2 + j", "(j * 2)"];
      const element = (l: number): string => {
        const value = `at_input(u32(at + (j * 4 + ${l}) * s.stride${last}))`;
        return isPadded
          ? `select(${fill}, ${value}, inside & ${isBetween(`(j * 4 + ${l})`, last)})`
          : value;
      };
      const quad =
        unit === 1
          ? `store_out(q, vec4<${scalar}>(${[0, 1, 2, 3].map(element).join(", ")}));`
          : `let place = u32(${unitOfInput});
    ${isPadded ? `if (!(inside & ${isBetween(firstQuad, last)})) { store_out(q, ${filledUnit}); continue; }` : ""}
    ${move}`;
      const each = unitsEach(context);
      return `${linearMain()}
  let length = s.size${last}${unit === 1 ? " / 4" : quads === 2 ? " / 2" : ""};
  let parts = (length + ${each - 1}) / ${each};
  let row = i32(index) / parts;
  let first = i32(index) % parts * ${each};
  if (u32(row * length) * ${4 * quads}u >= s.count) { return; }
  var rest = row;
${rank > 1 ? walk(last - 1, isPadded) : "  let at = s.offset;\n  let inside = true;\n"}  for (var j = first; j < min(first + ${each}, length); j++) {
    let q = u32(row * length + j);
    ${quad}
  }
}
`;
    },
    workgroups(scalars, _, context, quads = 1) {
      const units = Math.ceil((scalars.count as number) / (4 * quads));
      if (!byRows || units === 0) return linearWorkgroups(units);
      const length = quadsOfRow(scalars[`size${rank - 1}`] as number, unit) / quads;
      return linearWorkgroups((units / length) * Math.ceil(length / unitsEach(context)));
    },
    reference([input, out], scalars) {
      const [x, y] = [input, out] as [KernelView, KernelView];
      const all = (name: string): number[] => axes.map((d) => scalars[`${name}${d}`] as number);
      const [sizes, strides] = [all("size"), all("stride")];
      const [from, to] = isPadded ? [all("from"), all("to")] : [sizes.map(() => 0), sizes];
      const place = axes.map(() => 0);
      let at = scalars.offset as number;
      const isInside = (): boolean =>
        place.every((c, d) => c >= (from[d] as number) && c < (to[d] as number));
      for (let i = 0; i < y.length; i += unit) {
        const isRead = !isPadded || isInside();
        for (let j = 0; j < unit; j++)
          y[i + j] = (isRead ? x[at * unit + j] : scalars.fill) as number;
        for (let d = rank - 1; d >= 0; d--) {
          at += strides[d] as number;
          place[d] = (place[d] as number) + 1;
          if ((place[d] as number) < (sizes[d] as number)) break;
          at -= (strides[d] as number) * (sizes[d] as number);
          place[d] = 0;
        }
      }
    },
  });
}
