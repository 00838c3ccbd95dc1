import type { Binding, KernelScalar } from "@halfstep/device";
import {
  type Domain,
  domainsOf,
  type ElementwiseKernel,
  type ElementwiseProgram,
  type ElementwiseStep,
  elementwiseKernel,
  isElementwise,
  isRandom,
  stepPrefix,
} from "@halfstep/kernels";
import { hasConflict, maxBindings } from "../../record/bindings.js";
import type { Storage } from "../../record/storage.js";
import {
  type Pass,
  type PlanGraph,
  type PlanNode,
  roundingBetween,
  type ScalarSource,
  sameRange,
} from "../graph.js";
import { Rewriting } from "./rewriting.js";

/**
 * Merges an elementwise launch into the elementwise launch that alone reads its result. Leaves out those that draw random numbers:
 * sums that are added again in the backward pass would draw them again.
 */
export const fuseElementwise: Pass = (graph) =>
  fused(graph, ({ elementwise }) => !isRandom(elementwise));

/** The same with random numbers, once it is known which sums are added again. */
export const fuseRandom: Pass = (graph) => fused(graph, () => true);

function fused(graph: PlanGraph, isMeant: (kernel: ElementwiseKernel) => boolean): PlanGraph {
  const work = new Rewriting(graph);
  for (let n = 0; n < work.length; n++) {
    const fused = fuseIntoReader(work, n, isMeant);
    if (!fused) continue;
    work.remove(n);
    work.replace(fused.position, fused.node);
  }
  return work.graph();
}

/** The launch that takes the place of a producer's only reader; undefined where the two stay apart. */
function fuseIntoReader(
  work: Rewriting,
  producer: number,
  isMeant: (kernel: ElementwiseKernel) => boolean,
): { readonly position: number; readonly node: PlanNode } | undefined {
  const first = work.at(producer);
  if (!first || !isElementwise(first.launch.kernel) || !isMeant(first.launch.kernel))
    return undefined;
  if (first.launch.kernel.elementwise.outputs.length !== 1) return undefined;
  const position = work.onlyReaderOf(producer);
  if (position === undefined) return undefined;
  const second = work.at(position) as PlanNode;
  if (!isElementwise(second.launch.kernel) || !isMeant(second.launch.kernel)) return undefined;
  const reads = readingOf(first, second);
  if (!reads) return undefined;
  const result = first.launch.bindings.at(-1) as Binding<Storage>;
  const node = merge(first, second, result, reads);
  return node && !hasConflict(node.launch) ? { position, node } : undefined;
}

/**
 * How a launch reads the elements of one before it, if they can be computed where they are read: each in its place, or the only one
 * everywhere, for which nothing is drawn.
 */
function readingOf(first: PlanNode, second: PlanNode): "same" | "scalar" | undefined {
  const { count } = first.launch.scalars;
  if (count === second.launch.scalars.count) return "same";
  const { elementwise } = first.launch.kernel as ElementwiseKernel;
  return count === 1 && !isRandom(elementwise) ? "scalar" : undefined;
}

function merge(
  first: PlanNode,
  second: PlanNode,
  result: Binding<Storage>,
  reads: "same" | "scalar",
): PlanNode | undefined {
  const a = (first.launch.kernel as ElementwiseKernel).elementwise;
  const b = (second.launch.kernel as ElementwiseKernel).elementwise;
  const operands = second.launch.bindings.slice(0, b.inputs.length);
  const rounding = roundingBetween(
    result,
    operands.filter(({ buffer }) => buffer === result.buffer),
  );
  if (rounding === "several") return undefined;

  const builder = new ProgramBuilder();
  const fromFirst = builder.addInputs(first, a, () => undefined, reads);
  const firstSteps = builder.addSteps(first, a, fromFirst);
  const last = a.outputs[0] as number;
  const lastStep = builder.steps[firstSteps + last] as ElementwiseStep;
  if (rounding) {
    const chained = lastStep.rounding && lastStep.rounding !== rounding;
    if (chained) return undefined;
    builder.steps[firstSteps + last] = { ...lastStep, rounding };
  }
  let isAligned = true;
  const fromSecond = builder.addInputs(second, b, (input, indexing) => {
    if (input.buffer !== result.buffer) return undefined;
    if (indexing !== reads || input.length !== result.length) isAligned = false;
    return { step: firstSteps + last };
  });
  const secondSteps = builder.addSteps(second, b, fromSecond);
  const outputs = second.launch.bindings.slice(b.inputs.length);
  if (!isAligned || builder.inputs.length + outputs.length > maxBindings) return undefined;
  return builder.node(
    [first, second],
    outputs,
    b.outputs.map((o) => secondSteps + o),
  );
}

type Operand = { readonly input: number } | { readonly step: number };

/** Collects inputs, steps and scalars of two programs, and renumbers them as one. */
class ProgramBuilder {
  readonly inputs: {
    binding: Binding<Storage>;
    indexing: ElementwiseProgram["inputs"][number];
    domain: Domain;
  }[] = [];
  /** Operands are kept apart by kind until all inputs are known. */
  readonly steps: ElementwiseStep[] = [];
  readonly #operands: Operand[][] = [];
  readonly #scalars = new Map<string, number>();
  readonly #sources = new Map<string, ScalarSource>();

  addInputs(
    node: PlanNode,
    program: ElementwiseProgram,
    replace: (binding: Binding<Storage>, indexing: string) => Operand | undefined,
    reads: "same" | "scalar" = "same",
  ): Operand[] {
    const domains = domainsOf(program);
    return program.inputs.map((own, i) => {
      // All that a program of one element reads are single elements.
      const indexing = reads === "scalar" ? reads : own;
      const binding = node.launch.bindings[i] as Binding<Storage>;
      const known = replace(binding, indexing);
      if (known) return known;
      const members = node.launch.kernel.scalars.filter(({ name }) => name.startsWith(`x${i}_`));
      const scalarOf = (name: string): number => node.launch.scalars[name] as number;
      const same = this.inputs.findIndex(
        (other, o) =>
          sameRange(other.binding, binding) &&
          other.binding.rounding === binding.rounding &&
          other.indexing === indexing &&
          members.every(
            ({ name }) =>
              this.#scalars.get(`x${o}${name.slice(`x${i}`.length)}`) === scalarOf(name),
          ),
      );
      if (same >= 0) return { input: same };
      const domain = domains[i] as Domain;
      const index = this.inputs.push({ binding, indexing, domain }) - 1;
      for (const { name } of members)
        this.#scalars.set(`x${index}${name.slice(`x${i}`.length)}`, scalarOf(name));
      return { input: index };
    });
  }

  /** Appends the steps of a program, and returns the position of its first. */
  addSteps(node: PlanNode, program: ElementwiseProgram, inputs: readonly Operand[]): number {
    const base = this.steps.length;
    for (const [k, step] of program.steps.entries()) {
      this.steps.push(step);
      this.#operands.push(
        step.operands.map((o) =>
          o < inputs.length ? (inputs[o] as Operand) : { step: base + o - inputs.length },
        ),
      );
      for (const { name: own } of node.launch.kernel.scalars) {
        if (!own.startsWith(stepPrefix(k))) continue;
        const name = stepPrefix(base + k) + own.slice(stepPrefix(k).length);
        this.#scalars.set(name, node.launch.scalars[own] as number);
        const source = node.sources.get(own);
        if (source) this.#sources.set(name, source);
      }
    }
    return base;
  }

  node(
    [first, last]: readonly [PlanNode, PlanNode],
    outputs: readonly Binding<Storage>[],
    outputSteps: readonly number[],
  ): PlanNode {
    const count = this.inputs.length;
    const kernel = elementwiseKernel({
      inputs: this.inputs.map(({ indexing }) => indexing),
      domains: this.inputs.map(({ domain }) => domain),
      steps: this.steps.map((step, k) => ({
        ...step,
        operands: (this.#operands[k] as Operand[]).map((o) =>
          "input" in o ? o.input : count + o.step,
        ),
      })),
      outputs: outputSteps,
    });
    const scalars: Record<string, number> = {};
    for (const { name } of kernel.scalars as readonly KernelScalar[])
      scalars[name] = this.#scalars.get(name) ?? (last.launch.scalars[name] as number);
    return {
      launch: {
        kernel,
        bindings: [...this.inputs.map(({ binding }) => binding), ...outputs],
        scalars,
      },
      sources: this.#sources,
      recorded: [...first.recorded, ...last.recorded],
      isBackward: last.isBackward,
    };
  }
}
