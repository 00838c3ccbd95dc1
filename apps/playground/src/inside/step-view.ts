import type { Recipe } from "@halfstep/autocast";
import { bytesFor, type DType, isFloating } from "@halfstep/formats/dtypes";
import { castReason } from "@halfstep/nn";
import type { Plan, PlannedLaunch, PlannedValue } from "@halfstep/tensor";

type Note = NonNullable<PlannedLaunch["note"]>;
type NotedOp = Note["ops"][number];
type Binding = PlannedLaunch["launch"]["bindings"][number];

/** An op that a launch computes, or a part of it. */
export interface OpView {
  /** "linear", or "gradient of linear". */
  readonly name: string;
  readonly module: string;
  readonly runsIn?: DType;
  readonly why: string;
}

/** What a launch reads or writes. */
export interface OperandView {
  /** The name of a parameter, or the place in memory. */
  readonly name: string;
  readonly access: "read" | "write" | "readwrite";
  readonly shape: readonly number[];
  readonly dtype: DType;
  /** The format to which the launch rounds it on the way. */
  readonly rounding?: DType;
  readonly bytes: number;
  /** The launch of the same step that wrote it before. */
  readonly writer?: number;
}

/** One launch, as the page shows it. Plain data. */
export interface LaunchView {
  readonly kernel: string;
  readonly variant: string;
  readonly part: "forward" | "backward" | "update";
  /** Path of the module whose op it computes; "" for ops of the whole model or outside of it, and for launches of no op. */
  readonly module: string;
  readonly ops: readonly OpView[];
  readonly operands: readonly OperandView[];
  /** The format that it is drawn as: that of its op, or that of its result. */
  readonly format: DType;
  /** Positions in the recording of the launches that it stands for. */
  readonly recorded: readonly number[];
}

/** A value in memory: from its first launch to its last. */
export type ValueView = PlannedValue;

/** A step at one stage of the planner. */
export interface StepView {
  readonly launches: readonly LaunchView[];
  readonly slots: readonly number[];
  readonly values: readonly ValueView[];
}

/** What a plan looks like under the recipe of its step. */
export function viewOf(plan: Plan, recipe: Recipe): StepView {
  const writers = new Writers();
  return {
    launches: plan.launches.map((planned, index) => launchView(planned, index, recipe, writers)),
    slots: plan.slots,
    values: plan.values,
  };
}

function launchView(
  { launch, isBackward, recorded, note }: PlannedLaunch,
  index: number,
  recipe: Recipe,
  writers: Writers,
): LaunchView {
  const { kernel, bindings } = launch;
  const ops = note?.ops ?? [];
  const accesses = bindings.map((_, b) => kernel.bindings[b]?.access ?? "read");
  const operands = bindings.map((binding, b): OperandView => {
    const { shape = [binding.length], name = placeOf(binding) } = note?.operands[b] ?? {};
    const { dtype, rounding, length } = binding;
    const access = accesses[b] as OperandView["access"];
    const writer = access === "write" ? undefined : writers.of(binding);
    return {
      ...{ name, access, shape, dtype, bytes: bytesFor(dtype, length) },
      ...(rounding && { rounding }),
      ...(writer !== undefined && { writer }),
    };
  });
  for (const [b, binding] of bindings.entries())
    if (accesses[b] !== "read") writers.note(binding, index);
  return {
    kernel: kernel.name,
    variant: kernel.variant,
    part: ops.length === 0 ? "update" : isBackward ? "backward" : "forward",
    module: ops.find(({ module }) => module !== "")?.module ?? "",
    ops: ops.map((op) => opView(recipe, op)),
    operands,
    format: formatOf(ops, operands),
    recorded,
  };
}

function opView(recipe: Recipe, op: NotedOp): OpView {
  const { decision, backwardOf, module } = op;
  if (!decision)
    return { name: op.op, module, why: "the launch that reads its result needs another dtype" };
  const name = backwardOf === undefined ? op.op : `gradient of ${backwardOf}`;
  const runsIn = decision.cast.find(isFloating);
  return { name, module, why: castReason(recipe, op, decision), ...(runsIn && { runsIn }) };
}

/** The format of the first op that has decided for one; else that of the first result. */
function formatOf(ops: readonly NotedOp[], operands: readonly OperandView[]): DType {
  const decided = ops.flatMap(({ decision }) => decision?.cast.find(isFloating) ?? []);
  const results = operands.flatMap(({ access, dtype, rounding }) =>
    access !== "read" && isFloating(dtype) ? (rounding ?? dtype) : [],
  );
  return decided[0] ?? results[0] ?? "float32";
}

const placeOf = ({ buffer }: Binding): string =>
  buffer.kind === "slot" ? `memory ${buffer.index}` : `kept state ${buffer.index}`;

/** Which launch wrote which bytes last. */
class Writers {
  readonly #ranges = new Map<
    string,
    { readonly from: number; readonly to: number; readonly launch: number }[]
  >();

  note(binding: Binding, launch: number): void {
    const { key, from, to } = rangeOf(binding);
    const known = this.#ranges.get(key) ?? [];
    this.#ranges.set(key, known);
    known.push({ from, to, launch });
  }

  of(binding: Binding): number | undefined {
    const { key, from, to } = rangeOf(binding);
    return this.#ranges.get(key)?.findLast((range) => range.from < to && from < range.to)?.launch;
  }
}

const rangeOf = ({ buffer: { kind, index }, offset, dtype, length }: Binding) => ({
  key: `${kind} ${index}`,
  from: offset,
  to: offset + bytesFor(dtype, length),
});
