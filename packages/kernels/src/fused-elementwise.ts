import type { Binding, HalfDType, KernelScalar, Launch } from "@halfstep/device";
import type { Domain } from "./domain.js";
import {
  domainsOf,
  type ElementwiseKernel,
  type ElementwiseProgram,
  type ElementwiseStep,
  elementwiseKernel,
  isRandom,
  stepPrefix,
} from "./elementwise.js";

/** A launch of an elementwise kernel. */
export type ElementwiseLaunch<B> = Launch<B> & { readonly kernel: ElementwiseKernel };

/** Two elementwise launches as one. */
export interface FusedElementwise<B> {
  readonly launch: ElementwiseLaunch<B>;
  /** The origin of each scalar of a step, by its name in {@link launch}: its launch, and its name there. */
  readonly scalarOrigins: ReadonlyMap<
    string,
    { readonly from: "first" | "second"; readonly name: string }
  >;
}

/**
 * Fuses two launches: `second` reads the result of `first` without a store in between. Undefined where `second` does not read that
 * result at the same index, or where the two round it to different formats.
 *
 * @param first stores one result, which `second` reads.
 * @param rounding the format to which that result is rounded in between.
 */
export function fuseElementwiseLaunches<B>(
  first: ElementwiseLaunch<B>,
  second: ElementwiseLaunch<B>,
  rounding?: HalfDType,
): FusedElementwise<B> | undefined {
  const a = first.kernel.elementwise;
  const b = second.kernel.elementwise;
  const reads = readingOf(first, second);
  const [output, ...others] = a.outputs;
  if (!reads || output === undefined || others.length > 0) return undefined;
  const result = first.bindings.at(-1) as Binding<B>;

  const builder = new ProgramBuilder<B>();
  const fromFirst = builder.addInputs(first, () => undefined, reads);
  const step = builder.addSteps("first", first, fromFirst) + output;
  const lastStep = builder.steps[step] as ElementwiseStep;
  if (rounding) {
    if (lastStep.rounding && lastStep.rounding !== rounding) return undefined;
    builder.steps[step] = { ...lastStep, rounding };
  }
  let isAligned = true;
  const fromSecond = builder.addInputs(second, (input, indexing) => {
    if (input.buffer !== result.buffer) return undefined;
    if (indexing !== reads || input.length !== result.length) isAligned = false;
    return { step };
  });
  const secondSteps = builder.addSteps("second", second, fromSecond);
  if (!isAligned) return undefined;
  return builder.launch(
    second,
    b.outputs.map((o) => secondSteps + o),
  );
}

/**
 * How a launch reads the result of an earlier one, if the elements can be computed in the reader: each at the same index, or a
 * single element (without random bits) for all.
 */
function readingOf<B>(
  first: ElementwiseLaunch<B>,
  second: ElementwiseLaunch<B>,
): "same" | "scalar" | undefined {
  const { count } = first.scalars;
  if (count === second.scalars.count) return "same";
  return count === 1 && !isRandom(first.kernel.elementwise) ? "scalar" : undefined;
}

type Operand = { readonly input: number } | { readonly step: number };

interface ProgramInput<B> {
  readonly binding: Binding<B>;
  readonly indexing: ElementwiseProgram["inputs"][number];
  readonly domain: Domain;
  /** The scalars of its indexing, by the suffix after the input's number in their names. */
  readonly places: ReadonlyMap<string, number>;
}

/** Collects inputs, steps and scalars of two programs, and renumbers them as one. */
class ProgramBuilder<B> {
  readonly steps: ElementwiseStep[] = [];
  readonly #inputs: ProgramInput<B>[] = [];
  /** Operands are kept by kind until the number of inputs is known. */
  readonly #operands: Operand[][] = [];
  readonly #stepScalars = new Map<string, number>();
  readonly #origins = new Map<string, { from: "first" | "second"; name: string }>();

  /** Adds the inputs of a launch, and returns their operands. */
  addInputs(
    { kernel, bindings, scalars }: ElementwiseLaunch<B>,
    replace: (binding: Binding<B>, indexing: string) => Operand | undefined,
    reads: "same" | "scalar" = "same",
  ): Operand[] {
    const domains = domainsOf(kernel.elementwise);
    return kernel.elementwise.inputs.map((own, i) => {
      // A program of one element reads only single elements.
      const indexing = reads === "scalar" ? reads : own;
      const binding = bindings[i] as Binding<B>;
      const known = replace(binding, indexing);
      if (known) return known;
      const places = new Map<string, number>();
      const prefix = `x${i}_`;
      for (const { name } of kernel.scalars)
        if (name.startsWith(prefix)) places.set(name.slice(prefix.length), scalars[name] as number);
      const input = { binding, indexing, domain: domains[i] as Domain, places };
      const same = this.#inputs.findIndex((other) => isSameInput(other, input));
      return { input: same >= 0 ? same : this.#inputs.push(input) - 1 };
    });
  }

  /** Appends the steps of a launch, and returns the position of its first. */
  addSteps(
    from: "first" | "second",
    { kernel, scalars }: ElementwiseLaunch<B>,
    inputs: readonly Operand[],
  ): number {
    const base = this.steps.length;
    for (const [k, step] of kernel.elementwise.steps.entries()) {
      this.steps.push(step);
      this.#operands.push(
        step.operands.map((o) =>
          o < inputs.length ? (inputs[o] as Operand) : { step: base + o - inputs.length },
        ),
      );
      for (const { name: own } of kernel.scalars) {
        if (!own.startsWith(stepPrefix(k))) continue;
        const name = stepPrefix(base + k) + own.slice(stepPrefix(k).length);
        this.#stepScalars.set(name, scalars[own] as number);
        this.#origins.set(name, { from, name: own });
      }
    }
    return base;
  }

  /** The launch of the whole program, with the outputs and the size of the second launch. */
  launch(second: ElementwiseLaunch<B>, outputSteps: readonly number[]): FusedElementwise<B> {
    const inputs = this.#inputs;
    const kernel = elementwiseKernel({
      inputs: inputs.map(({ indexing }) => indexing),
      domains: inputs.map(({ domain }) => domain),
      steps: this.steps.map((step, k) => ({
        ...step,
        operands: (this.#operands[k] as Operand[]).map((o) =>
          "input" in o ? o.input : inputs.length + o.step,
        ),
      })),
      outputs: outputSteps,
    });
    const known = new Map(this.#stepScalars);
    for (const [i, { places }] of inputs.entries())
      for (const [place, value] of places) known.set(`x${i}_${place}`, value);
    const scalars: Record<string, number> = {};
    for (const { name } of kernel.scalars as readonly KernelScalar[])
      scalars[name] = known.get(name) ?? (second.scalars[name] as number);
    const outputs = second.bindings.slice(second.kernel.elementwise.inputs.length);
    const bindings = [...inputs.map(({ binding }) => binding), ...outputs];
    return { launch: { kernel, bindings, scalars }, scalarOrigins: this.#origins };
  }
}

const isSameInput = <B>(a: ProgramInput<B>, b: ProgramInput<B>): boolean =>
  a.binding.buffer === b.binding.buffer &&
  a.binding.offset === b.binding.offset &&
  a.binding.length === b.binding.length &&
  a.binding.dtype === b.binding.dtype &&
  a.binding.rounding === b.binding.rounding &&
  a.indexing === b.indexing &&
  [...b.places].every(([place, value]) => a.places.get(place) === value);
