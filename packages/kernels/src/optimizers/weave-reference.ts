import type { KernelView } from "@halfstep/device";
import { blockLength, decodeBlock, encodeBlock } from "./blockwise.js";
import { parameterStorages } from "./parameter-storage.js";
import type { PassPlan } from "./pass-plan.js";
import type { Numbers, UpdateRule } from "./rule.js";
import { chunkWords } from "./segment-table.js";

type Views = Readonly<Record<string, KernelView>>;

/** The arithmetic of a woven pass on the CPU. */
export function referenceOf(
  plan: PassPlan,
): (views: readonly KernelView[], scalars: Readonly<Record<string, number>>) => void {
  return (list, scalars) => {
    const views: Views = Object.fromEntries(
      plan.bindings.map(({ name }, i) => [name, list[i] as KernelView]),
    );
    const control = views.control as KernelView;
    if (control[0] === 0) return;
    const values = controlNumbers(plan.rule, control, scalars);
    const walk = new Walk(plan, views, scalars, values);
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
  readonly #inverse: number;
  readonly #element: Numbers;
  readonly #blocks: Readonly<Record<string, Float64Array>>;
  readonly #parameter: { load(i: number): number; store(i: number, p: number): void };

  constructor(
    plan: PassPlan,
    views: Views,
    scalars: Readonly<Record<string, number>>,
    values: Numbers,
  ) {
    this.#plan = plan;
    this.#views = views;
    this.#values = values;
    this.#inverse = Math.fround((views.control?.[1] as number) * (scalars.sign as number));
    this.#element = { g: 0, p: 0 };
    for (const { name } of plan.states) this.#element[name] = 0;
    this.#blocks = Object.fromEntries(
      plan.states.filter((s) => s.is8Bit).map(({ name }) => [name, new Float64Array(blockLength)]),
    );
    this.#parameter = parameterStorages[plan.parameters].view(views, scalars);
  }

  /** Quads from `first` to `end`, as far as there are elements. */
  flat(first: number, end: number): void {
    const length = Math.min(end * 4, this.#length());
    this.#elements(first * 4, length, 0, undefined);
  }

  chunk(chunk: number): void {
    const [quad, count, segment, block] = (this.#views.chunks as KernelView).subarray(
      chunk * chunkWords,
      (chunk + 1) * chunkWords,
    ) as unknown as [number, number, number, number];
    for (const { name, place } of this.#plan.factors)
      this.#values[name] = this.#views.factors?.[segment * 4 + place] as number;
    const { totals } = this.#plan.pass;
    const sums = totals && new Float64Array(totals.terms.length);
    for (let at = 0; at < count; at += blockLength) {
      const length = Math.min(blockLength, count - at);
      this.#block({ start: quad * 4 + at, length, block: block + at / blockLength, segment }, sums);
    }
    if (sums) (this.#views.partials as KernelView).set(sums, chunk * 4);
  }

  #block(
    {
      start,
      length,
      block,
      segment,
    }: {
      readonly start: number;
      readonly length: number;
      readonly block: number;
      readonly segment: number;
    },
    sums: Float64Array | undefined,
  ): void {
    const { states } = this.#plan;
    for (const { name, kind, is8Bit } of states)
      if (is8Bit)
        decodeBlock(
          this.#views[name] as KernelView,
          block,
          kind as "signed" | "unsigned",
          length,
          this.#blocks[name] as Float64Array,
        );
    this.#elements(start, start + length, segment, sums);
    for (const { name, kind, is8Bit, isStored } of states)
      if (is8Bit && isStored)
        encodeBlock(
          this.#views[name] as KernelView,
          block,
          kind as "signed" | "unsigned",
          length,
          this.#blocks[name] as Float64Array,
        );
  }

  #elements(from: number, to: number, segment: number, sums: Float64Array | undefined): void {
    const { pass, states, loadsParameter, storesParameter, usesGradient } = this.#plan;
    const e = this.#element;
    const s = this.#values;
    const stored = states.map(({ name, is8Bit, isStored }) => ({
      name,
      isStored,
      view: (is8Bit ? this.#blocks[name] : this.#views[name]) as KernelView,
      base: is8Bit ? from : 0,
    }));
    const gradients = this.#views.gradients;
    const terms = pass.totals?.terms ?? [];
    const isMax = pass.totals?.fold === "max";
    for (let i = from; i < to; i++) {
      if (usesGradient) e.g = (gradients?.[i] as number) * this.#inverse;
      if (loadsParameter) e.p = this.#parameter.load(i);
      for (const { name, view, base } of stored) e[name] = view[i - base] as number;
      pass.inputs?.load(this.#views, { index: i, segment }, e);
      pass.update(e as Numbers<"g" | "p">, s as Numbers<"lr" | "first">);
      if (sums)
        for (let t = 0; t < terms.length; t++) {
          const value = terms[t]?.value(e as Numbers<"g" | "p">, s as Numbers<"lr" | "first">) ?? 0;
          const total = sums[t] as number;
          sums[t] = isMax ? Math.max(total, value) : total + value;
        }
      for (const { name, isStored, view, base } of stored)
        if (isStored) view[i - base] = e[name] as number;
      if (storesParameter) this.#parameter.store(i, e.p as number);
    }
  }

  #length(): number {
    const { usesGradient, states } = this.#plan;
    const view = usesGradient ? this.#views.gradients : this.#views.values;
    return (view ?? this.#views[states[0]?.name ?? ""])?.length ?? 0;
  }
}
