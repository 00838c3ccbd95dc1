import type { Binding, Kernel, LaunchTarget } from "@halfstep/device";
import { requireLengths } from "../operands.js";
import type { ResidentTarget } from "../resident-target.js";
import { checkRule, checkRuleScalars } from "./check-rule.js";
import type { ParameterKind, StorageBuffers } from "./parameter-storage.js";
import type { UpdateRule } from "./rule.js";
import { controlLength } from "./step-control.js";
import { passKernel } from "./weave.js";

/** A range of consecutive segments of a flat buffer. */
export interface UpdateRange {
  /** Elements, a multiple of 4. */
  readonly offset: number;
  readonly length: number;
  readonly firstSegment: number;
  readonly endSegment: number;
  readonly firstChunk: number;
  readonly endChunk: number;
}

/** The buffers of one group of parameters; all are whole, and `range` selects the elements to update. */
export interface UpdateOperands<B> {
  readonly values: Binding<B>;
  readonly gradients: Binding<B>;
  /** The control words of `stepControl`. */
  readonly control: Binding<B>;
  readonly parameters: ParameterKind;
  /** Buffers of the parameters' storage besides the values. */
  readonly storage: StorageBuffers<B>;
  /** float32, bfloat16, or uint32 for 8-bit blocks. Totals of segments keep their state here too. */
  readonly state: Readonly<Record<string, Binding<B>>>;
  /** Inputs of passes. */
  readonly inputs?: Readonly<Record<string, Binding<B>>> | undefined;
  /** `segmentTable(...)` on the device, and scratch for a vec4f for each chunk and segment. */
  table(): SegmentBuffers<B>;
}

/** Memory of the segments of a flat update. */
export interface SegmentBuffers<B> {
  readonly chunks: Binding<B>;
  readonly segments: Binding<B>;
  readonly partials: Binding<B>;
  readonly factors: Binding<B>;
}

/** Numbers of one update. */
export interface UpdateAttributes {
  /** By the names that the rule and the storage declare. */
  readonly scalars: Readonly<Record<string, number>>;
  readonly maximize: boolean;
  /** Runs between the passes of the rule: after pass `index` and its totals. */
  readonly between?: (index: number) => void;
}

/** A target of updates. One with resident memory gets the launches that update parameters through `updateParameters`. */
export type UpdateTarget<B> = LaunchTarget<B> & Pick<ResidentTarget<B>, "updateParameters">;

/**
 * One step of a rule over some segments: a launch for each pass, and another one where it has totals. In a skipped step no
 * bit of any operand changes.
 */
export function launchUpdate<B>(
  target: UpdateTarget<B>,
  rule: UpdateRule,
  operands: UpdateOperands<B>,
  ranges: readonly UpdateRange[],
  { scalars, maximize, between }: UpdateAttributes,
): void {
  const { values, gradients, control, state, storage } = operands;
  checkRule(rule);
  checkRuleScalars(rule, scalars);
  requireLengths(
    rule.name,
    { gradients, control },
    { gradients: values.length, control: controlLength },
  );
  const dtypes = Object.values(state).map(({ dtype }) => dtype);
  const moments = dtypes.includes("uint32")
    ? "8bit"
    : dtypes.includes("bfloat16")
      ? "bfloat16"
      : "float32";
  const common: Readonly<Record<string, Binding<B>>> = { values, gradients, control };
  const boundTo = (name: string): Binding<B> => {
    const binding =
      operands.inputs?.[name] ??
      state[name] ??
      storage[name] ??
      common[name] ??
      operands.table()[name as keyof SegmentBuffers<B>];
    if (binding) return binding;
    throw new TypeError(`${rule.name}: nothing is bound to ${name}, which the rule uses: give it`);
  };
  const sign = maximize ? -1 : 1;
  const launch = (kernel: ReturnType<typeof passKernel>, first: number, end: number): void =>
    target.launch({
      kernel,
      bindings: kernel.bindings.map(({ name }) => boundTo(name)),
      scalars: scalarsOf(kernel, scalars, { first, end, sign }),
    });
  const launchPass = (index: number): void => {
    const kernel = passKernel(rule, index, operands.parameters, moments);
    const walksChunks = kernel.bindings.some(({ name }) => name === "chunks");
    for (const { offset, length, firstChunk, endChunk } of ranges)
      if (walksChunks) launch(kernel, firstChunk, endChunk);
      else launch(kernel, offset / 4, Math.ceil((offset + length) / 4));
    if (rule.gather && rule.passes[index]?.totals)
      for (const { firstSegment, endSegment } of ranges)
        launch(rule.gather(rule, index), firstSegment, endSegment);
    between?.(index);
  };
  const launchAll = (): void => {
    for (const index of rule.passes.keys()) launchPass(index);
  };
  if (target.updateParameters) target.updateParameters(values, launchAll);
  else launchAll();
}

/**
 * The values of a kernel's scalars, which depend on whether a pass draws random bits and whether it iterates over quads,
 * chunks or segments.
 */
function scalarsOf(
  kernel: Kernel,
  values: Readonly<Record<string, number>>,
  own: Readonly<Record<string, number>>,
): Record<string, number> {
  const scalars: Record<string, number> = {};
  for (const { name } of kernel.scalars) {
    const value = own[name] ?? values[name];
    if (value !== undefined) scalars[name] = value;
  }
  return scalars;
}
