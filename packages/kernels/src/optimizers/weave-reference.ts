import type { KernelView } from "@halfstep/device";
import { type Strip, stripLength } from "../formula/operators.js";
import { StripEvaluator } from "../formula/strips.js";
import { stochasticBfloat16 } from "./bits.js";
import { blockLength, decodeBlock, encodeBlock } from "./blockwise.js";
import { Draws } from "./draws.js";
import { parameterStorages } from "./parameter-storage.js";
import type { PassPlan, PassState } from "./pass-plan.js";
import type { Numbers, UpdateRule } from "./rule.js";
import { chunkWords } from "./segment-table.js";
import { rootsOf } from "./trace-rule.js";

type Views = Readonly<Record<string, KernelView>>;

/** The arithmetic of a woven pass on the CPU. */
export function referenceOf(
  plan: PassPlan,
): (views: readonly KernelView[], scalars: Readonly<Record<string, number>>) => void {
  const keys = Object.keys(plan.trace.next);
  const roots = rootsOf(plan.trace);
  const isKept = (name: string): boolean => plan.states.some((s) => s.name === name && !s.is8Bit);
  const evaluator = new StripEvaluator(
    roots,
    new Set(roots.filter((_, root) => isKept(keys[root] ?? ""))),
  );
  return (list, scalars) => {
    const views: Views = Object.fromEntries(
      plan.bindings.map(({ name }, i) => [name, list[i] as KernelView]),
    );
    const control = views.control as KernelView;
    if (control[0] === 0) return;
    const values = controlNumbers(plan.rule, control, scalars);
    const walk = new Walk(plan, evaluator, views, scalars, values);
    if (!plan.walksChunks) walk.flat(scalars.first as number, scalars.end as number);
    else
      for (let chunk = scalars.first as number; chunk < (scalars.end as number); chunk++)
        walk.chunk(chunk);
  };
}

/** Scalars and control words by the names that rules use. */
export function controlNumbers(
  rule: UpdateRule,
  control: KernelView,
  scalars: Readonly<Record<string, number>>,
): Numbers {
  const values: Numbers = { ...scalars, lr: control[2] as number, first: control[3] as number };
  for (const [i, name] of (rule.columns ?? []).entries()) values[name] = control[5 + i] as number;
  return values;
}

class Walk {
  readonly #plan: PassPlan;
  readonly #views: Views;
  readonly #values: Numbers;
  readonly #factor: number;
  readonly #draws: Draws;
  readonly #evaluator: StripEvaluator;
  /** Whether new states are rounded to float32 before other formulas use them. */
  readonly #keeps: boolean;
  /** Indices of new values among the results of the evaluator. */
  readonly #results: ReadonlyMap<string, number>;
  /** Decoded 8-bit moments. */
  readonly #blocks: Readonly<Record<string, Strip>>;
  readonly #parameter: { load(i: number): number; store(i: number, p: number): void };

  constructor(
    plan: PassPlan,
    evaluator: StripEvaluator,
    views: Views,
    scalars: Readonly<Record<string, number>>,
    values: Numbers,
  ) {
    this.#plan = plan;
    this.#evaluator = evaluator;
    this.#views = views;
    this.#values = values;
    const control = views.control as KernelView;
    const [coarse, fine] = control;
    this.#keeps = control instanceof Float32Array;
    this.#factor = (coarse as number) * Math.fround((fine as number) * (scalars.sign as number));
    this.#results = new Map(Object.keys(plan.trace.next).map((name, root) => [name, root]));
    this.#blocks = Object.fromEntries(
      plan.states.filter((s) => s.is8Bit).map(({ name }) => [name, new Float64Array(blockLength)]),
    );
    this.#draws = new Draws(control, scalars);
    this.#parameter = parameterStorages[plan.parameters].view(views, this.#draws);
  }

  /** Quads from `first` to `end`, up to the last element. */
  flat(first: number, end: number): void {
    const length = Math.min(end * 4, this.#length());
    this.#evaluator.begin(this.#values);
    for (let start = first * 4; start < length; start += stripLength)
      this.#strip(start, Math.min(stripLength, length - start), 0);
  }

  chunk(chunk: number): void {
    const [quad, count, segment, block] = (this.#views.chunks as KernelView).subarray(
      chunk * chunkWords,
      (chunk + 1) * chunkWords,
    ) as unknown as [number, number, number, number];
    for (const { name, place } of this.#plan.factors)
      this.#values[name] = this.#views.factors?.[segment * 4 + place] as number;
    this.#evaluator.begin(this.#values);
    const { terms } = this.#plan.trace;
    const sums = new Float64Array(terms.length);
    for (let at = 0; at < count; at += blockLength) {
      const length = Math.min(blockLength, count - at);
      this.#block(quad * 4 + at, length, block + at / blockLength, segment);
      for (const t of terms.keys()) this.#addTo(sums, t, length);
    }
    if (terms.length > 0) (this.#views.partials as KernelView).set(sums, chunk * 4);
  }

  /** Computes one block of 8-bit moments, which is one strip. */
  #block(start: number, length: number, block: number, segment: number): void {
    const { states } = this.#plan;
    const coded = states.filter(({ is8Bit }) => is8Bit);
    const of = ({ name, kind }: PassState) =>
      [this.#views[name] as KernelView, block, kind as "signed" | "unsigned", length] as const;
    for (const state of coded) decodeBlock(...of(state), this.#blocks[state.name] as Strip);
    this.#strip(start, length, segment);
    for (const state of coded)
      if (state.isStored)
        encodeBlock(...of(state), this.#resultOf(state.name), (i) =>
          this.#draws.at(start + i, state.place + 1),
        );
  }

  /** Loads, computes and stores `count` elements from `start`, except 8-bit moments. */
  #strip(start: number, count: number, segment: number): void {
    const { states, storesParameter } = this.#plan;
    this.#load(start, count, segment);
    this.#evaluator.run(count, this.#keeps);
    for (const { name, place, isStored, is8Bit, isBfloat16 } of states) {
      if (!isStored || is8Bit) continue;
      const view = this.#views[name] as KernelView;
      const result = this.#resultOf(name);
      if (isBfloat16)
        for (let i = 0; i < count; i++)
          view[start + i] = stochasticBfloat16(
            result[i] as number,
            this.#draws.at(start + i, place + 1),
          );
      else view.set(result.subarray(0, count), start);
    }
    if (!storesParameter) return;
    const result = this.#resultOf("p");
    for (let i = 0; i < count; i++) this.#parameter.store(start + i, result[i] as number);
  }

  #load(start: number, count: number, segment: number): void {
    const { pass, states, used } = this.#plan;
    const evaluator = this.#evaluator;
    if (used.has("g")) {
      const strip = evaluator.stripOf("g");
      const gradients = this.#views.gradients as KernelView;
      const factor = this.#factor;
      for (let i = 0; i < count; i++) strip[i] = (gradients[start + i] as number) * factor;
    }
    if (used.has("p")) {
      const strip = evaluator.stripOf("p");
      for (let i = 0; i < count; i++) strip[i] = this.#parameter.load(start + i);
    }
    for (const { name, is8Bit } of states)
      if (is8Bit) evaluator.read(name, this.#blocks[name] as Strip);
      else if (used.has(name))
        evaluator
          .stripOf(name)
          .set((this.#views[name] as KernelView).subarray(start, start + count));
    if (!pass.inputs) return;
    const names = pass.inputs.values.filter((name) => used.has(name));
    const e: Numbers = {};
    for (let i = 0; i < count; i++) {
      pass.inputs.load(this.#views, { index: start + i, segment }, e);
      for (const name of names) evaluator.stripOf(name)[i] = e[name] as number;
    }
  }

  /** The new values of a state or of the parameter in the latest strip. */
  #resultOf(name: string): Strip {
    return this.#evaluator.result(this.#results.get(name) as number);
  }

  /** Adds the latest strip to a total. */
  #addTo(sums: Float64Array, term: number, count: number): void {
    const values = this.#evaluator.result(this.#results.size + term);
    const isMax = this.#plan.pass.totals?.fold === "max";
    let total = sums[term] as number;
    for (let i = 0; i < count; i++) {
      const value = values[i] as number;
      total = isMax ? Math.max(total, value) : total + value;
    }
    sums[term] = total;
  }

  #length(): number {
    const { usesGradient, states } = this.#plan;
    const view = usesGradient ? this.#views.gradients : this.#views.values;
    return (view ?? this.#views[states[0]?.name ?? ""])?.length ?? 0;
  }
}
