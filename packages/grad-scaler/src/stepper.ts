import { Marks, scalesAfterUpdate, scalesGiven } from "./marks.js";
import type { AmpPrimitives, Gradient, ScaledOptimizer, ScaleMark } from "./primitives.js";
import type { Resident } from "./resident.js";
import type { ScaleRule } from "./rule.js";
import {
  betweenSteps,
  gradientsToCheck,
  type HostState,
  initialHostState,
  listOf,
  refuseLoss,
  refuseNewScale,
  refuseStep,
  refuseUnmarked,
  refuseUnscale,
  refuseUpdate,
  type SkipMode,
} from "./stages.js";
import { checkedScale } from "./state-dict.js";

/** The loss that is scaled, among several, and the optimizers to whose gradients its backward pass will add. */
export interface LossOptions<B> {
  /** Default 0. */
  readonly lossId?: number;
  /** Required with several losses only: their gradients may still carry the scale of another loss. */
  readonly optimizers?: ScaledOptimizer<B> | readonly ScaledOptimizer<B>[];
}

export interface StepperOptions {
  readonly skip: SkipMode;
  readonly allowNoGrad: boolean;
}

/** Carries out the steps of training: updates the host's state and enqueues work for the device. */
export class Stepper<B, L> {
  readonly resident: Resident<B, L> | undefined;
  readonly marks: Marks = new Marks();
  readonly primitives: AmpPrimitives<B, L>;
  /** Buffers of a scale of 1, where the windows of a disabled scaler have needed them. */
  unit: { readonly state: B; readonly lossFlag: B } | undefined;
  readonly #options: StepperOptions;
  #host: HostState<B>;

  /** @param resident Absent where scaling is disabled. */
  constructor(
    primitives: AmpPrimitives<B, L>,
    resident: Resident<B, L> | undefined,
    rules: readonly ScaleRule[],
    options: StepperOptions,
  ) {
    this.primitives = primitives;
    this.resident = resident;
    this.#options = options;
    this.#host = initialHostState(rules);
  }

  get host(): HostState<B> {
    return this.#host;
  }

  /** `loss × weight × scale`, once gradients of `optimizers` carry that scale. */
  scale(loss: L, { lossId = 0, optimizers }: LossOptions<B>, weight = 1): L {
    const { resident } = this;
    if (resident === undefined) return loss;
    const all = optimizers && listOf(optimizers);
    refuseLoss(this.#host, lossId, all);
    const { state, lossFlag } = resident.loss(lossId);
    const mark = this.#scaledMark(lossId);
    const scaled = this.primitives.scaleLoss(loss, state, { weight, lossFlag, mark });
    if (!this.#host.scaled) this.#set("scaled", true);
    if (this.#host.rules.length > 1)
      for (const each of all ?? []) this.#carry(resident, each, lossId);
    return scaled;
  }

  /** Converts the gradients of an optimizer from any loss's scale to that of a loss. */
  #carry(resident: Resident<B, L>, optimizer: ScaledOptimizer<B>, lossId: number): void {
    const carries = this.#host.carried.get(optimizer);
    if (carries === lossId) return;
    this.#set("carried", new Map(this.#host.carried).set(optimizer, lossId));
    if (carries === undefined) return;
    const gradients = [...optimizer.gradients()];
    const foundInf = this.#checkFor(resident, optimizer, carries);
    const [from, to] = [resident.loss(carries).state, resident.loss(lossId).state];
    this.primitives.rescale?.(gradients, from, to, foundInf);
    const [before] = this.marks.of(this.#host, carries);
    const all = [...(optimizer.gradientMarks?.() ?? [])];
    // Gradients of other origin do not change: they are refused when they are used.
    if (all.every(({ marks }) => marks.size === 1 && marks.has(before)))
      this.#mark(optimizer, lossId);
  }

  /** Declares the gradients of an optimizer as scaled. */
  assumeScaled(optimizer: ScaledOptimizer<B>, lossId: number): void {
    if (this.resident === undefined) return;
    refuseLoss(this.#host, lossId, [optimizer]);
    this.change({ scaled: true, carried: new Map(this.#host.carried).set(optimizer, lossId) });
    this.#mark(optimizer, lossId);
  }

  /** The mark for losses that are multiplied by this loss's scale; undefined where the scale is known to be 1. */
  #scaledMark(lossId: number): ScaleMark | undefined {
    return this.#isIdentity(lossId) ? undefined : this.marks.of(this.#host, lossId)[0];
  }

  #mark(optimizer: ScaledOptimizer<B>, lossId: number): void {
    optimizer.markGradients?.(this.#scaledMark(lossId) ?? "plain");
  }

  /** Whether the scale of a loss is 1 and cannot change. */
  #isIdentity(lossId: number): boolean {
    const { rules, scales } = this.#host;
    return !rules[lossId]?.dynamic && scales.given[lossId] === 1;
  }

  /** Refuses scaled gradients that were added to unscaled ones, and checks others. */
  requireUnscaled(optimizer: ScaledOptimizer<B>): void {
    const { resident } = this;
    if (resident === undefined || this.#host.stages.get(optimizer) !== "unscaled") return;
    const lossId = this.#carriedLoss(optimizer);
    const isIdentity = this.#isIdentity(lossId);
    if (!this.marks.requireUnscaled(optimizer, this.#host.scales, isIdentity)) return;
    this.primitives.check([...optimizer.gradients()], this.#checkFor(resident, optimizer, lossId));
  }

  unscale(optimizer: ScaledOptimizer<B>): void {
    const { resident } = this;
    if (resident === undefined) return;
    refuseUnscale(this.#host, optimizer);
    this.#check(resident, [optimizer], () => true);
  }

  step(all: readonly ScaledOptimizer<B>[]): void {
    const { resident } = this;
    if (resident === undefined) {
      for (const optimizer of all) optimizer.step();
      return;
    }
    refuseStep(this.#host, all);
    for (const optimizer of all) this.requireUnscaled(optimizer);
    const ready = all.filter((optimizer) => !this.#host.stages.has(optimizer));
    const fused = new Set(ready.filter((optimizer) => optimizer.stepSupportsAmpScaling));
    this.#check(resident, ready, (optimizer) => !fused.has(optimizer));
    for (const optimizer of all) {
      const foundInf = this.guard(resident, optimizer);
      const { state } = resident.loss(this.#carriedLoss(optimizer));
      optimizer.step({ foundInf, gradScale: fused.has(optimizer) ? state : undefined });
      this.#enter(optimizer, "stepped");
    }
  }

  /** Checks optimizers that are READY, and unscales the gradients of some in place. Refuses all of them or none. */
  #check(
    resident: Resident<B, L>,
    ready: readonly ScaledOptimizer<B>[],
    inPlace: (optimizer: ScaledOptimizer<B>) => boolean,
  ): void {
    const gradients = ready.map((each) => this.#checkedGradients(each));
    for (const [i, optimizer] of ready.entries()) {
      this.#enter(optimizer, "unscaled");
      const lossId = this.#carriedLoss(optimizer);
      const loss = resident.loss(lossId);
      const own = gradients[i] ?? [];
      if (loss.exponents !== undefined && this.#isDecision(lossId)) {
        this.primitives.countExponents?.(own, loss.exponents);
        this.#set("counted", new Set(this.#host.counted).add(lossId));
      }
      const foundInf = this.#checkFor(resident, optimizer, lossId);
      const { squares } = resident;
      if (inPlace(optimizer)) {
        this.primitives.unscale(own, loss.state, foundInf, squares);
        optimizer.markGradients?.(this.marks.of(this.#host, lossId)[1]);
      } else this.primitives.check(own, foundInf, squares && { squares, state: loss.state });
    }
    for (const optimizer of ready) {
      const lossIds = this.#checkedLosses(optimizer);
      if (lossIds.length < 2) continue;
      const owner = this.#owner(optimizer);
      const flags = lossIds.map((lossId) => resident.flag(owner, lossId));
      this.primitives.combine?.(flags, resident.guard(owner, lossIds));
    }
  }

  /** The gradients of an optimizer, after a check that they carry the scale of this step. */
  #checkedGradients(optimizer: ScaledOptimizer<B>): readonly Gradient<B>[] {
    const lossId = this.#carriedLoss(optimizer);
    const gradients = gradientsToCheck(this.#host, optimizer, this.#options);
    const { scales } = this.#host;
    const isIdentity = this.#isIdentity(lossId);
    const isKnown = this.marks.requireScaled(optimizer, scales, lossId, isIdentity);
    if (!isKnown && gradients.length > 0) refuseUnmarked(this.#host, optimizer, isIdentity);
    return gradients;
  }

  update(newScale?: number): void {
    const { resident } = this;
    if (resident === undefined) return;
    const { rules, step, scaled, scales: known, stages, counted } = this.#host;
    const scales =
      newScale === undefined
        ? undefined
        : rules.map(({ minScale, maxScale }) =>
            checkedScale("newScale", newScale, Math.max(minScale, 2 ** -149), maxScale),
          );
    if (scales === undefined) refuseUpdate(this.#host);
    else if (stages.size === 0) refuseNewScale(this.#host, "update(newScale)");
    const optimizers = [...stages.keys()];
    const stepped = optimizers.map((optimizer) => stages.get(optimizer) === "stepped");
    const records = this.records(resident, scales !== undefined);
    const counts = stages.size > 0;
    this.#replace(
      betweenSteps({
        rules,
        step: counts ? step + 1 : step,
        scales: scales
          ? scalesGiven(known, scales)
          : scalesAfterUpdate(known, rules, new Set(records.map(({ lossId }) => lossId))),
        steppedBefore: scaled ? new Set(optimizers.filter((_, i) => stepped[i])) : undefined,
      }),
    );
    if (counts) this.primitives.onRollback?.(() => resident.reader.forget());
    const tags = counts
      ? resident.reader.expect({
          step: step + 1,
          stepped,
          together: this.#options.skip === "global",
          records,
          hasSeveralLosses: rules.length > 1,
          findOrigin: this.primitives.watchStep?.(),
        })
      : [];
    for (const [i, { rule, lossId, foundInfs }] of records.entries()) {
      const use = { counted: counted.has(lossId), isLast: i === records.length - 1 };
      resident.update(lossId, use, {
        foundInfs,
        rule,
        tag: tags[i] ?? 0,
        newScale: scales?.[lossId],
      });
    }
  }

  /** The losses that took part in this step, or all, and the flags that optimizers set for them. */
  records(
    resident: Resident<B, L>,
    all: boolean,
  ): { rule: ScaleRule; lossId: number; optimizers: number[]; foundInfs: B[] }[] {
    const { rules, stages, checked } = this.#host;
    const known = [...stages.keys()];
    const records = [];
    for (const [lossId, rule] of rules.entries()) {
      const optimizers: number[] = [];
      const foundInfs: B[] = [];
      for (const [each, lossIds] of checked) {
        if (!lossIds.includes(lossId)) continue;
        // An optimizer that was checked but neither unscaled nor stepped has no index (-1), but its overflow counts.
        optimizers.push(known.indexOf(each));
        const flag = resident.flag(this.#owner(each), lossId);
        if (!foundInfs.includes(flag)) foundInfs.push(flag);
      }
      if (optimizers.length > 0 || all) records.push({ rule, lossId, optimizers, foundInfs });
    }
    return records;
  }

  /** The flag with which gradients that carry a loss's scale are checked. */
  #checkFor(resident: Resident<B, L>, optimizer: ScaledOptimizer<B>, lossId: number): B {
    // With skip: "global" all optimizers share the flag and its list of losses.
    const before = this.#host.checked.get(optimizer) ?? [];
    if (!before.includes(lossId)) {
      this.#set("checked", new Map(this.#host.checked).set(optimizer, [...before, lossId]));
    }
    return resident.flag(this.#owner(optimizer), lossId);
  }

  /** The flag that guards the step of an optimizer. */
  guard(resident: Resident<B, L>, optimizer: ScaledOptimizer<B>): B {
    return resident.guard(this.#owner(optimizer), this.#checkedLosses(optimizer));
  }

  /** The losses with whose flags the optimizers that skip together with this one were checked. */
  #checkedLosses(optimizer: ScaledOptimizer<B>): readonly number[] {
    const { checked } = this.#host;
    if (this.#options.skip === "perOptimizer") return checked.get(optimizer) ?? [];
    return [...new Set([...checked.values()].flat())];
  }

  #carriedLoss(optimizer: ScaledOptimizer<B>): number {
    return this.#host.carried.get(optimizer) ?? 0;
  }

  /** Whether the rule of a loss may use exponents in this step. */
  #isDecision(lossId: number): boolean {
    const { rules, step } = this.#host;
    return (step + 1) % (rules[lossId]?.growthInterval ?? 1) === 0;
  }

  #owner(optimizer: object): object {
    return this.#options.skip === "global" ? this : optimizer;
  }

  #enter(optimizer: ScaledOptimizer<B>, stage: "unscaled" | "stepped"): void {
    this.#set("stages", new Map(this.#host.stages).set(optimizer, stage));
  }

  /** Changes the host's state; it is restored if the open recording is dropped. */
  change(changes: Partial<HostState<B>>): void {
    this.#replace({ ...this.#host, ...changes });
  }

  /** {@link change} of one member, as each step makes several: copying an object is fast, and merging two is not. */
  #set<K extends keyof HostState<B>>(member: K, value: HostState<B>[K]): void {
    const host: { -readonly [each in keyof HostState<B>]: HostState<B>[each] } = { ...this.#host };
    host[member] = value;
    this.#replace(host);
  }

  #replace(host: HostState<B>): void {
    const before = this.#host;
    this.primitives.onRollback?.(() => {
      this.#host = before;
    });
    this.#host = host;
  }
}
