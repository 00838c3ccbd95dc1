import type { KernelView } from "@halfstep/device";
import { stochasticBfloat16 } from "./bits.js";
import { blockLength, decodeBlock, encodeBlock } from "./blockwise.js";
import { Draws } from "./draws.js";
import { parameterStorages } from "./parameter-storage.js";
import type { PassPlan } from "./pass-plan.js";
import type { Numbers, UpdatePass, UpdateRule } from "./rule.js";
import { chunkWords } from "./segment-table.js";

type Views = Readonly<Record<string, KernelView>>;

/** The arithmetic of a woven pass on the CPU. */
export function referenceOf(
  plan: PassPlan,
): (views: readonly KernelView[], scalars: Readonly<Record<string, number>>) => void {
  const element = elementOf(plan.states.map(({ name }) => name));
  return (list, scalars) => {
    const views: Views = Object.fromEntries(
      plan.bindings.map(({ name }, i) => [name, list[i] as KernelView]),
    );
    const control = views.control as KernelView;
    if (control[0] === 0) return;
    const values = controlNumbers(plan.rule, control, scalars);
    const walk = new Walk(plan, element, views, scalars, values);
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
  readonly #element: Element;
  readonly #blocks: Readonly<Record<string, Float64Array>>;
  readonly #parameter: { load(i: number): number; store(i: number, p: number): void };

  constructor(
    plan: PassPlan,
    element: Element,
    views: Views,
    scalars: Readonly<Record<string, number>>,
    values: Numbers,
  ) {
    this.#plan = plan;
    this.#views = views;
    this.#values = values;
    const [coarse, fine] = views.control as KernelView;
    this.#factor = (coarse as number) * Math.fround((fine as number) * (scalars.sign as number));
    this.#element = element;
    this.#blocks = Object.fromEntries(
      plan.states.filter((s) => s.is8Bit).map(({ name }) => [name, new Float64Array(blockLength)]),
    );
    this.#draws = new Draws(views.control as KernelView, scalars);
    this.#parameter = parameterStorages[plan.parameters].view(views, this.#draws);
  }

  /** Quads from `first` to `end`, up to the last element. */
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
    for (const { name, kind, place, is8Bit, isStored } of states)
      if (is8Bit && isStored)
        encodeBlock(
          this.#views[name] as KernelView,
          block,
          kind as "signed" | "unsigned",
          length,
          this.#blocks[name] as Float64Array,
          (i) => this.#draws.at(start + i, place + 1),
        );
  }

  #elements(from: number, to: number, segment: number, sums: Float64Array | undefined): void {
    const { pass, states, loadsParameter, storesParameter, usesGradient } = this.#plan;
    const e = this.#element;
    const s = this.#values as Numbers<"lr" | "first">;
    const parameter = this.#parameter;
    const gradients = this.#views.gradients;
    const factor = this.#factor;
    const { inputs } = pass;
    const fold = sums && foldOf(pass, sums);
    e.views = states.map(({ name, is8Bit }) =>
      is8Bit
        ? (this.#blocks[name] as Float64Array)
        : (this.#views[name] as KernelView).subarray(from, to),
    );
    const rounded = states
      .map(({ place, isStored, isBfloat16 }, k) => ({
        place,
        isRounded: isStored && isBfloat16,
        view: e.views[k] as KernelView,
      }))
      .filter(({ isRounded }) => isRounded);
    // The hot loop of updates on the CPU.
    for (let i = from; i < to; i++) {
      e.at = i - from;
      if (usesGradient) e.g = (gradients?.[i] as number) * factor;
      if (loadsParameter) e.p = parameter.load(i);
      if (inputs) inputs.load(this.#views, { index: i, segment }, e as unknown as Numbers);
      pass.update(e as unknown as Numbers<"g" | "p">, s);
      if (fold) fold(e as unknown as Numbers<"g" | "p">, s);
      for (const { view, place } of rounded)
        view[i - from] = stochasticBfloat16(view[i - from] as number, this.#draws.at(i, place + 1));
      if (storesParameter) parameter.store(i, e.p);
    }
  }

  #length(): number {
    const { usesGradient, states } = this.#plan;
    const view = usesGradient ? this.#views.gradients : this.#views.values;
    return (view ?? this.#views[states[0]?.name ?? ""])?.length ?? 0;
  }
}

/** An element as a rule gets it. States are accessors to the views under the names of the rule, without copies. */
class Element {
  g = 0;
  p = 0;
  at = 0;
  views: readonly KernelView[] = [];
}

const classes = new Map<string, new () => Element>();

/** One class for each set of states, with accessors on its prototype: engines make these as fast as fields. */
function elementOf(states: readonly string[]): Element {
  const key = states.join();
  let Named = classes.get(key);
  if (!Named) {
    Named = class extends Element {};
    for (const [place, name] of states.entries())
      Object.defineProperty(Named.prototype, name, {
        get(this: Element) {
          return (this.views[place] as KernelView)[this.at];
        },
        set(this: Element, value: number) {
          (this.views[place] as KernelView)[this.at] = value;
        },
      });
    classes.set(key, Named);
  }
  return new Named();
}

/** Adds one element to the totals of its segment. */
function foldOf(
  { totals }: UpdatePass,
  sums: Float64Array,
): (e: Numbers<"g" | "p">, s: Numbers<"lr" | "first">) => void {
  const { terms = [], fold } = totals ?? {};
  return (e, s) => {
    for (const [t, term] of terms.entries()) {
      const value = term.value(e, s);
      const total = sums[t] as number;
      sums[t] = fold === "max" ? Math.max(total, value) : total + value;
    }
  };
}
