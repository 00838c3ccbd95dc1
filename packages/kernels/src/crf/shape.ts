import type {
  Binding,
  KernelBinding,
  KernelView,
  ProgramContext,
  Workgroups,
} from "@halfstep/device";
import { linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";
import { expOf, logOf } from "../wgsl/transcendental.js";

/**
 * Linear-chain conditional random fields (Lafferty et al. 2001). A workgroup walks along one sequence, its lanes share the tags, and
 * the numbers of a place wait in workgroup memory for the next one. Everything is in log space and in float32.
 */
export interface CrfShape {
  readonly batch: number;
  /** Places of a sequence, at least 1. */
  readonly length: number;
  /** At most {@link maxCrfTags}. */
  readonly numTags: number;
}

/** What every CRF kernel reads. */
export interface CrfOperands<B> {
  /** [batch, length, tags] */
  readonly emissions: Binding<B>;
  /** [tags] */
  readonly start: Binding<B>;
  /** [tags] */
  readonly end: Binding<B>;
  /** [from, to] */
  readonly transitions: Binding<B>;
  /** uint32 [batch, length], not 0 for the places that count; nothing is read of the others. Default: all count. */
  readonly mask?: Binding<B> | undefined;
}

/** Tags whose numbers of two places fit into the workgroup memory that every device has. */
export const maxCrfTags = 512;

export function requireCrf<B>(
  op: string,
  { emissions, start, end, transitions, mask }: CrfOperands<B>,
  { batch, length, numTags }: CrfShape,
): void {
  if (length < 1) throw new RangeError(`${op}: sequences of 0 places have no tags`);
  if (numTags < 1 || numTags > maxCrfTags)
    throw new RangeError(`${op} takes 1 to ${maxCrfTags} tags, not ${numTags}`);
  requireLengths(
    op,
    { emissions, start, end, transitions, mask },
    {
      emissions: batch * length * numTags,
      start: numTags,
      end: numTags,
      transitions: numTags ** 2,
      mask: batch * length,
    },
  );
}

/** The operands that there may be, which are static choices of a program. */
export interface CrfParts {
  readonly hasTags: boolean;
  readonly hasMask: boolean;
  /** Whether the tags are more than the lanes of a small workgroup. */
  readonly isWide: boolean;
}

export const variantOf = ({ hasTags, hasMask, isWide }: CrfParts): string =>
  [hasTags && "tags", hasMask && "mask", isWide && "wide"].filter(Boolean).join(", ");

/** A kernel for each choice of parts, made when it is first asked for. */
export function byParts<T>(make: (parts: CrfParts) => T): (parts: CrfParts) => T {
  const made = new Map<string, T>();
  return (parts) => {
    const key = variantOf(parts);
    const known = made.get(key) ?? make(parts);
    made.set(key, known);
    return known;
  };
}

export const partsOf = (
  { tags, mask }: { readonly tags?: unknown; readonly mask?: unknown },
  { numTags }: CrfShape,
): CrfParts => ({ hasTags: !!tags, hasMask: !!mask, isWide: numTags > smallLanes });

/** The optional operands that there are. */
export const given = <T>(...operands: readonly (T | undefined)[]): readonly T[] =>
  operands.filter((operand) => operand !== undefined);

const integers = (name: string): KernelBinding => ({
  name,
  access: "read",
  unit: 1,
  dtypes: ["uint32"],
});

export const tagsBinding = ({ hasTags }: CrfParts): readonly KernelBinding[] =>
  hasTags ? [integers("tags")] : [];

export const maskBinding = ({ hasMask }: CrfParts): readonly KernelBinding[] =>
  hasMask ? [integers("mask")] : [];

/** A binding of float32, of which invocations store one element at a time. */
export const single = (name: string, access: "read" | "write"): KernelBinding => ({
  name,
  access,
  unit: 1,
  dtypes: ["float32"],
});

export const crfScalars: readonly { readonly name: string; readonly type: "u32" }[] = [
  "batch",
  "length",
  "tags",
].map((name) => ({ name, type: "u32" }));

export const scalarsOf = ({
  batch,
  length,
  numTags,
}: CrfShape): Readonly<Record<string, number>> => ({
  batch,
  length,
  tags: numTags,
});

export interface CrfScalars {
  readonly batch: number;
  readonly length: number;
  readonly tags: number;
}

const smallLanes = 32;

/** On CPU adapters a barrier is cheap in a workgroup of one subgroup only. */
function lanesOf({ subgroupSize, hardware }: ProgramContext, { isWide }: CrfParts): number {
  const small = subgroupSize || smallLanes;
  return isWide && hardware?.class !== "software" ? Math.max(small, 256) : small;
}

export const chainWorkgroups = ({ batch }: Readonly<Record<string, number>>): Workgroups =>
  linearWorkgroups(batch as number, 1);

/** The largest float32 downwards: from here maxima of finite numbers and of none start. */
const lowest = "-3.4028234e38";

/** WGSL statements that compute `log_sum` of quads `i` of numbers; what is behind the last tag does not count. */
export const logSumExpCode = (quad: string): string => /* wgsl */ `
  var tops = vec4f(${lowest});
  for (var i = 0u; i < s.tags; i += 4u) { tops = max(tops, select(vec4f(${lowest}), ${quad}, counted(i))); }
  let largest = max(max(tops.x, tops.y), max(tops.z, tops.w));
  var totals = vec4f(0.0);
  for (var i = 0u; i < s.tags; i += 4u) { totals += select(vec4f(0.0), row_exp(${quad} - largest), counted(i)); }
  let log_sum = largest + row_log(vec4f((totals.x + totals.y) + (totals.z + totals.w))).x;
`;

/** The names of arrays in workgroup memory, of two places each. */
export const placeArrays = (...names: readonly string[]): string =>
  names.map((name) => `var<workgroup> ${name}: array<f32, ${2 * maxCrfTags}>;\n`).join("");

/** WGSL functions of all CRF kernels. `highest` is the largest emission of a place, by which the others are made smaller. */
export const crfFunctions = ({
  hasMask,
}: CrfParts): string => `${expOf("row_exp")}${logOf("row_log")}
fn counted(i: u32) -> vec4<bool> { return vec4u(i) + vec4u(0u, 1u, 2u, 3u) < vec4u(s.tags); }
fn is_present(place: u32) -> bool { return ${hasMask ? "at_mask(place) != 0u" : "true"}; }
`;

export const highestFunction: string = /* wgsl */ `
fn highest(place: u32) -> f32 {
  var top = ${lowest};
  for (var j = 0u; j < s.tags; j++) { top = max(top, at_emissions(place * s.tags + j)); }
  return top;
}
`;

/** The head of an entry point that walks along sequence `b`: `lane` takes tags `lane`, `lane + lanes`, … */
export function chainMain(context: ProgramContext, parts: CrfParts): string {
  const lanes = lanesOf(context, parts);
  return `const lanes = ${lanes}u;
@compute @workgroup_size(${lanes})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
  let b = group.x + group.y * groups.x;
  if (b >= s.batch) { return; }
`;
}

/** WGSL: where the numbers of place t wait, among two. */
export const half = (t: string): string => `((${t}) & 1u) * ${maxCrfTags}u`;

/** Views of a reference by the names of their bindings. */
export function named(
  bindings: readonly KernelBinding[],
  views: readonly KernelView[],
): Readonly<Record<string, KernelView>> {
  return Object.fromEntries(bindings.map(({ name }, i) => [name, views[i] as KernelView]));
}

/** The largest emission of a place. */
export function highestOf(emissions: ArrayLike<number>, place: number, tags: number): number {
  let top = -3.4028234663852886e38;
  for (let j = 0; j < tags; j++) top = Math.max(top, emissions[place * tags + j] as number);
  return top;
}

/** log Σ exp of `count` numbers. */
export function logSumExp(count: number, value: (i: number) => number): number {
  let top = -3.4028234663852886e38;
  for (let i = 0; i < count; i++) top = Math.max(top, value(i));
  let total = 0;
  for (let i = 0; i < count; i++) total += Math.exp(value(i) - top);
  return top + Math.log(total);
}
