import type { Binding, Kernel, KernelScalar, Launch } from "@halfstep/device";

/**
 * The layout of an operand's heads in its binding, in elements: element c of token t of head h of sequence b is at start + b · batch + h ·
 * head + t · token + c.
 */
export interface HeadLayout {
  readonly start: number;
  readonly batch: number;
  readonly head: number;
  readonly token: number;
}

/** An operand of a kernel that addresses heads by a layout. */
export interface HeadOperand {
  readonly name: string;
  readonly tokens: "queries" | "keys";
  readonly size: "size" | "width";
  readonly isResult: boolean;
  /** Whether each of its heads belongs to a `group` of heads of queries. */
  readonly isShared?: boolean;
  /** Elements that are moved at a time; layouts consist of multiples of it. */
  readonly unit: 1 | 4;
  readonly binding: number;
}

/**
 * How a kernel stores its results: each `whole` in a binding of its own, as `parts` of bindings whose other elements stay, or `joined` as
 * parts of one binding.
 */
export type StoredResults = "whole" | "parts" | "joined";

/** A kernel with operands whose heads may have any layout. */
export interface HeadKernel extends Kernel {
  readonly heads: {
    readonly operands: readonly HeadOperand[];
    readonly results: StoredResults;
    /** The variant of the kernel that stores its results this way. */
    storing(results: StoredResults): HeadKernel;
  };
}

const hasHeads = (kernel: Kernel): kernel is HeadKernel => "heads" in kernel;

/** An operand of a launch whose layout may change, with its present layout. */
export interface Heads extends Pick<HeadOperand, "name" | "isResult" | "binding"> {
  readonly layout: HeadLayout;
  /** Number of sequences; each `heads` of them belong to one batch element. */
  readonly entries: number;
  readonly heads: number;
  /** Heads of queries to which each head belongs. */
  readonly group: number;
  readonly tokens: number;
  /** Elements of a head for one token. */
  readonly size: number;
}

/** The operands of a launch whose layout may change; none for kernels without layouts. */
export const headsOf = ({ kernel, scalars }: Launch<unknown>): readonly Heads[] =>
  hasHeads(kernel)
    ? kernel.heads.operands.map((operand) => ({
        name: operand.name,
        isResult: operand.isResult,
        binding: operand.binding,
        layout: layoutOf(operand, scalars),
        ...headCountsOf(operand, scalars),
        group: groupOf(operand, scalars),
        tokens: scalars[operand.tokens] as number,
        size: scalars[operand.size] as number,
      }))
    : [];

const groupOf = ({ isShared }: HeadOperand, scalars: Readonly<Record<string, number>>): number =>
  isShared ? (scalars.group as number) : 1;

/** The heads of an operand, all and per batch element. */
function headCountsOf(operand: HeadOperand, scalars: Readonly<Record<string, number>>): HeadCounts {
  const group = groupOf(operand, scalars);
  return {
    entries: (scalars.entries as number) / group,
    heads: (scalars.heads as number) / group,
  };
}

/** A place for an operand: a binding, and the layout of the heads in it. */
export interface HeadPlace<B> {
  readonly binding: Binding<B>;
  readonly layout: HeadLayout;
}

/**
 * The launch with some operands, by name, in other places, with so many heads of queries per batch element. The rest of a binding that a result does
 * not fill keeps its contents. Undefined where the kernel cannot address these places.
 */
export function withHeads<B>(
  { kernel, bindings, scalars }: Launch<B>,
  moved: ReadonlyMap<string, HeadPlace<B>>,
  heads: number,
): Launch<B> | undefined {
  if (!hasHeads(kernel)) return undefined;
  const { operands } = kernel.heads;
  const places = new Map<string, Binding<B>>();
  const changed: Record<string, number> = { ...scalars, heads };
  for (const operand of operands) {
    const { name, binding, unit } = operand;
    const count = heads / groupOf(operand, scalars);
    if (!Number.isInteger(count)) return undefined;
    const layout =
      moved.get(name)?.layout ??
      withHeadCount(layoutOf(operand, scalars), headCountsOf(operand, scalars), count);
    if (!layout || Object.values(layout).some((value) => value % unit !== 0)) return undefined;
    setLayout(changed, operand, layout);
    places.set(name, moved.get(name)?.binding ?? (bindings[binding] as Binding<B>));
  }
  const results = operands.filter(({ isResult }) => isResult);
  const isMoved = results.some(({ name }) => moved.has(name));
  const stored = isMoved ? storedAs(results, places, scalars) : kernel.heads.results;
  if (!stored) return undefined;
  const own = kernel.heads.storing(stored);
  const bound: (Binding<B> | undefined)[] = own.bindings.map(
    ({ name }) => bindings[kernel.bindings.findIndex((old) => old.name === name)],
  );
  for (const { name, binding } of own.heads.operands) bound[binding] = places.get(name);
  return { kernel: own, bindings: bound as Binding<B>[], scalars: changed };
}

/** How results with these bindings have to be stored. */
function storedAs<B>(
  results: readonly HeadOperand[],
  places: ReadonlyMap<string, Binding<B>>,
  scalars: Readonly<Record<string, number>>,
): StoredResults | undefined {
  const bound = results.map(({ name }) => places.get(name) as Binding<B>);
  const [first, second] = bound as [Binding<B>, Binding<B> | undefined];
  if (second && first.buffer === second.buffer && first.offset === second.offset) {
    const isSame =
      first.length === second.length &&
      first.dtype === second.dtype &&
      first.rounding === second.rounding;
    return isSame ? "joined" : undefined;
  }
  const fills = (operand: HeadOperand, { length }: Binding<B>): boolean =>
    [
      headCountsOf(operand, scalars).entries,
      scalars[operand.tokens],
      scalars[operand.size],
    ].reduce<number>((a, b = 0) => a * b, 1) === length;
  return results.every((result, r) => fills(result, bound[r] as Binding<B>)) ? "whole" : "parts";
}

interface HeadCounts {
  readonly entries: number;
  readonly heads: number;
}

/** The same layout with another number of heads per batch element; undefined where their distances are not equal. */
export function withHeadCount(
  { start, batch, head, token }: HeadLayout,
  { entries, heads }: HeadCounts,
  count: number,
): HeadLayout | undefined {
  if (count === heads) return { start, batch, head, token };
  const isEven = heads === entries || batch === head * heads;
  const step = heads === 1 ? batch : isEven ? head : undefined;
  return step === undefined ? undefined : { start, batch: step * count, head: step, token };
}

const strides = ["start", "batch", "head", "token"] as const;

type StrideNames = Readonly<Record<keyof HeadLayout, string>>;

const strideNames = new Map<string, StrideNames>();

/** The names of an operand's scalars, built once because each launch of attention has many of them. */
function namesOf(operand: string): StrideNames {
  let names = strideNames.get(operand);
  if (!names) {
    names = Object.fromEntries(
      strides.map((stride) => [stride, `${operand}_${stride}`]),
    ) as StrideNames;
    strideNames.set(operand, names);
  }
  return names;
}

export const headScalars = (operands: readonly HeadOperand[]): readonly KernelScalar[] =>
  ["heads", ...operands.flatMap(({ name }) => strides.map((stride) => namesOf(name)[stride]))].map(
    (name) => ({ name, type: "u32" }),
  );

const layoutOf = (
  { name, unit }: HeadOperand,
  scalars: Readonly<Record<string, number>>,
): HeadLayout => {
  const names = namesOf(name);
  const at = (stride: keyof HeadLayout): number => (scalars[names[stride]] as number) * unit;
  return { start: at("start"), batch: at("batch"), head: at("head"), token: at("token") };
};

function setLayout(
  scalars: Record<string, number>,
  { name, unit }: HeadOperand,
  { start, batch, head, token }: HeadLayout,
): void {
  const names = namesOf(name);
  scalars[names.start] = start / unit;
  scalars[names.batch] = batch / unit;
  scalars[names.head] = head / unit;
  scalars[names.token] = token / unit;
}

/** Adds the scalars for operands with contiguous heads; a row of a result takes whole units. */
export function setDense(
  operands: readonly HeadOperand[],
  scalars: Record<string, number>,
): Record<string, number> {
  const heads = Math.max(1, scalars.entries as number);
  scalars.heads = heads;
  for (const operand of operands) {
    const token = Math.ceil((scalars[operand.size] as number) / operand.unit) * operand.unit;
    const head = (scalars[operand.tokens] as number) * token;
    const batch = (heads / groupOf(operand, scalars)) * head;
    setLayout(scalars, operand, { start: 0, batch, head, token });
  }
  return scalars;
}

/** WGSL: declares `x_base` for each operand x: the start of the tokens of `entry`, in units. Divisions and remainders are slow on CPUs. */
export const headBases = (operands: readonly HeadOperand[]): string =>
  `  let batch = entry / s.heads;
  let head = entry - batch * s.heads;
${operands.map(({ name, isShared }) => `  let ${name}_base = s.${name}_start + batch * s.${name}_batch + head${isShared ? " / s.group" : ""} * s.${name}_head;\n`).join("")}`;

/** The start of a token for an entry of queries, in elements of the operand's binding. */
export function tokenPlaces(
  operand: HeadOperand,
  scalars: Readonly<Record<string, number>>,
): (entry: number, token: number) => number {
  const { start, batch, head, token: step } = layoutOf(operand, scalars);
  const heads = scalars.heads as number;
  const group = groupOf(operand, scalars);
  return (entry, token) =>
    start +
    Math.floor(entry / heads) * batch +
    Math.floor((entry % heads) / group) * head +
    token * step;
}
