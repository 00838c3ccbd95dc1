import type { Binding } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import type { GradientMark, MarkedGradient } from "@halfstep/grad-scaler";
import { allocateResident, fill, type ResidentTarget } from "@halfstep/kernels";
import {
  type ClipOfStep,
  clipPartials,
  partialsEach,
  type UpdateRange,
} from "@halfstep/kernels/optimizers";
import type {
  Algorithm,
  CommonOptions,
  GradientAdaptation,
  GroupInput,
  OptimizerOptions,
  ParameterGroup,
  StepOptions,
} from "./algorithm.js";
import {
  requireFlat,
  requireGroups,
  requireKnown,
  requireNone,
  requireOneOf,
  requireOptions,
  requirePositive,
  requireSeed,
  requireState,
  requireTarget,
  shown,
} from "./checks.js";
import { OptimizerStateError } from "./errors.js";
import { requireLayout } from "./flat-layout.js";
import { type FlatTensors, gradientsOf, partOf, segmentRanges } from "./flat-tensors.js";
import type { MomentFormat } from "./group-state.js";
import { type ParameterStorage, parameterStorages, storageOf } from "./parameter-storage.js";
import { ResidentGroup, validateOptions } from "./resident-group.js";
import { markedGradients, refuseScaledStep } from "./scale-marks.js";
import { refuseShard } from "./shard-checks.js";
import type { GroupStateDict, OptimizerStateDict } from "./state-dict.js";
import type { StepObserver, WritableGroup } from "./step-observer.js";

/** A group with gradients in this step. */
interface PresentGroup<B, H extends CommonOptions> {
  readonly group: ResidentGroup<B, H>;
  readonly index: number;
  readonly ranges: readonly UpdateRange[];
}

/**
 * An optimizer over flat buffers: two launches for each group for rules of one pass, for any number of parameters, and no number
 * of a step is read by the host. It satisfies `ScaledOptimizer` of `@halfstep/grad-scaler`.
 */
export class FlatOptimizer<B, H extends CommonOptions> {
  readonly target: ResidentTarget<B>;
  /** True: `step` multiplies gradients by `1 / scale` itself. */
  readonly stepSupportsAmpScaling: boolean = true;
  readonly #algorithm: Algorithm<H>;
  readonly #defaults: H;
  /** The names of options that are true or false. */
  readonly #flags: readonly string[];
  readonly #storage: ParameterStorage | undefined;
  readonly #moments: MomentFormat;
  readonly #clipGradNorm: number | undefined;
  readonly #groups: ResidentGroup<B, H>[] = [];
  readonly #paramGroups: ParameterGroup<B, H>[] = [];
  readonly #noFoundInf: Binding<B>;
  readonly #noScale: Binding<B>;
  readonly #observers: Set<StepObserver<B>> = new Set();
  #lastControl: Binding<B> | undefined;
  #seed: number;
  #partials: Binding<B> | undefined;

  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, H>[],
    algorithm: Algorithm<H>,
    defaults: H,
    options: Partial<H> & OptimizerOptions,
  ) {
    requireTarget(algorithm.name, target);
    requireGroups(algorithm.name, params);
    requireOptions(algorithm.name, options);
    const { storage, moments = "float32", seed = 0, clipGradNorm, ...own } = options;
    requireKnown(algorithm.name, own, defaults);
    requireOneOf("moments", moments, ["float32", "bfloat16", "int8"]);
    if (storage !== undefined) requireOneOf("storage", storage, parameterStorages);
    requireSeed(seed);
    if (clipGradNorm !== undefined) requirePositive("clipGradNorm", clipGradNorm);
    this.target = target;
    this.#algorithm = algorithm;
    this.#defaults = { ...defaults, ...given(own as Partial<H>) };
    this.#flags = Object.keys(defaults).filter(
      (name) => typeof defaults[name as keyof H] === "boolean",
    );
    this.#storage = storage;
    this.#moments = moments;
    this.#seed = seed;
    this.#clipGradNorm = clipGradNorm;
    this.#noFoundInf = this.#allocate(1);
    this.#noScale = this.#allocate(2);
    target.write(this.#noScale, [1, 1]);
    const groups = "segments" in params ? [{ params } as GroupInput<B, H>] : params;
    for (const group of groups) this.addParamGroup(group);
  }

  /** The name of the rule: "AdamW", as state dicts have it. */
  get algorithm(): string {
    return this.#algorithm.name;
  }

  /**
   * The groups, in the order of their addition; later ones are appended. `group.lr = 1e-4` takes effect from the next `step()`.
   */
  get paramGroups(): readonly ParameterGroup<B, H>[] {
    return this.#paramGroups;
  }

  /**
   * Adds parameters with initial state; a schedule starts at its own step 0. Buffers of other groups do not move.
   *
   * @throws TypeError where the storage of the values does not fit, for an unknown dtype, and for two parameters of one name.
   * RangeError for options out of range or unknown, and for segments that overlap, leave their buffer or start where kernels
   * cannot read them.
   */
  addParamGroup(input: GroupInput<B, H>): void {
    const { params, ...own } = input;
    requireFlat(this.#algorithm.name, params);
    requireKnown(`a group of ${this.#algorithm.name}`, own, this.#defaults);
    const options: ParameterGroup<B, H> = { ...this.#defaults, ...given(input) };
    const algorithm = this.#algorithm;
    validateOptions(options, algorithm, this.#flags);
    requireLayout(params);
    if (this.#groups.some((other) => other.options.params.values === params.values))
      throw new TypeError(
        `${params.segments[0]?.name ?? "a buffer"} is in two groups: give each parameter to one group only`,
      );
    const formats = { storage: storageOf(params, this.#storage), moments: this.#moments };
    const rules = { algorithm, flags: this.#flags };
    this.#groups.push(new ResidentGroup(this.target, options, rules, formats));
    this.#paramGroups.push(options);
  }

  /** Names of all parameters, for errors. */
  *parameterNames(): Generator<string> {
    for (const { params } of this.paramGroups) for (const { name } of params.segments) yield name;
  }

  /** The gradients that are present. */
  *gradients(): Generator<Binding<B> & { readonly dtype: "float32"; readonly name: string }> {
    for (const [i, group] of this.#groups.entries())
      for (const { x, offset, length } of group.gradients())
        yield {
          buffer: x.buffer,
          offset: x.offset + bytesFor(x.dtype, offset),
          length,
          dtype: "float32",
          name: `group ${i}`,
        };
  }

  /** The gradients that are present, each with its marks of loss scales. */
  gradientMarks(): Iterable<MarkedGradient> {
    return markedGradients(this.paramGroups.map(({ params }) => params));
  }

  /** Replaces the marks of every present gradient by one mark, for scalers. */
  markGradients(mark: GradientMark): void {
    for (const { params } of this.paramGroups) params.markGradients?.(mark);
  }

  /**
   * Updates the parameters that have gradients. Where `foundInf` is set, no bit changes: parameters, 16-bit values, moments, and
   * the count of applied steps, on which schedules and bias corrections depend.
   *
   * @param adaptation Changes gradients before the rule.
   * @throws ScalerStateError for gradients that carry a loss scale, without `gradScale`. TypeError for a closure, as torch takes it, and
   * RangeError for unknown options.
   */
  step(options: StepOptions<B> = {}, adaptation?: GradientAdaptation<H>): void {
    requireStepOptions(options);
    if (options.gradScale === undefined) refuseScaledStep(this);
    for (const group of this.#groups) group.validate();
    const observers = this.#observers;
    for (const observer of observers) observer.begin?.();
    const present = this.#groups
      .map((group, index) => ({ group, index, ranges: group.ranges() }))
      .filter(({ ranges }) => ranges.length > 0);
    for (const { group } of present) group.adoptWritten();
    const scale = options.gradScale ?? this.#noScale.buffer;
    const foundInf = options.foundInf ?? this.#noFoundInf.buffer;
    const clip = this.#clip(present, scale);
    this.#lastControl = present[0]?.group.control;
    for (const { group, index, ranges } of present)
      group.step({ index, ranges, foundInf, scale, clip, seed: this.#seed, observers }, adaptation);
  }

  /** Control words of the last `step()`, `[0 where it was skipped, …]`; undefined if it updated nothing. */
  get lastControl(): Binding<B> | undefined {
    return this.#lastControl;
  }

  /** How each group keeps its parameters, in the order of {@link paramGroups}: "plain", "master" and others. */
  get storages(): readonly string[] {
    return this.#groups.map(({ storage }) => storage.name);
  }

  /** The groups with their storage, in the order of {@link paramGroups}. Throws a ShardError for a shard. */
  keptGroups(): readonly WritableGroup<B>[] {
    this.#refuseShards();
    return this.#groups.map((group) => ({
      params: group.options.params,
      storage: group.storage,
      applied: group.applied,
      control: group.control,
      adoptWritten: () => group.adoptWritten(),
      keepValues: () => group.keepValues(),
    }));
  }

  /** Observes steps from the next one on, until the returned function is called. Throws a ShardError for a shard. */
  observe(observer: StepObserver<B>): () => void {
    this.#refuseShards();
    this.#observers.add(observer);
    return () => void this.#observers.delete(observer);
  }

  /** Throws a TypeError where the rule of a group cannot be adapted, and a ShardError for a shard. */
  checkAdaptation(adaptation: GradientAdaptation<H>): void {
    for (const { rule, options } of this.#groups) {
      adaptation.rule(rule);
      refuseShard(options.params, "rates from the norms of parameters");
    }
  }

  /** Sets every gradient to zero, or makes it absent where the parameters support it. */
  zeroGrad(): void;
  zeroGrad(...given: readonly unknown[]): void {
    requireNone("zeroGrad()", given);
    for (const { params } of this.paramGroups)
      if (params.zeroGrad) params.zeroGrad();
      else
        for (const range of segmentRanges(params))
          this.target.launch(fill(partOf(gradientsOf(params), range), 0));
  }

  /**
   * Sets masters, remainders and compensations from the present values, after 16-bit values were written by other code than
   * `step()`. For parameters with `valuesVersion` (those of `@halfstep/tensor`) the next step does this automatically.
   */
  reloadMasters(): void {
    for (const group of this.#groups) group.adoptValues();
  }

  /** Number of applied steps, by group. Waits for the device. */
  async appliedSteps(): Promise<readonly number[]> {
    const counts = this.#groups.map(({ applied }) => this.target.read(applied));
    return (await Promise.all(counts)).map(([applied]) => applied as number);
  }

  /** Moments, masters, applied steps and options, without the parameters. Waits for the device. */
  async stateDict(): Promise<OptimizerStateDict> {
    return {
      algorithm: this.#algorithm.name,
      seed: this.#seed,
      groups: await Promise.all(this.#groups.map((group) => group.stateDict())),
    };
  }

  /**
   * Continues from a saved state. Saved options replace those of the groups, except learning rates that are schedules. With
   * remainders and compensations, load the parameters first; with masters, in any order. Call it between steps.
   *
   * @throws OptimizerStateError, before anything is changed, where the state comes from another algorithm, model, storage or
   * format of moments: a state is never converted.
   */
  loadStateDict(stateDict: OptimizerStateDict): void {
    this.target.requireNoStep?.("loadStateDict() of an optimizer");
    requireState("an optimizer", stateDict, ["algorithm", "groups", "seed"]);
    const { algorithm, groups, seed } = stateDict;
    if (algorithm !== this.#algorithm.name)
      throw new OptimizerStateError(
        `the state is one of ${algorithm}, not of ${this.#algorithm.name}: make the optimizer that was saved`,
      );
    if (groups.length !== this.#groups.length)
      throw new OptimizerStateError(
        `the state has ${groups.length} parameter groups, but the optimizer ${this.#groups.length}: add the same groups first`,
      );
    requireSeed(seed);
    const loads = this.#groups.map((group, i) => group.loading(groups[i] as GroupStateDict, i));
    this.#seed = seed;
    for (const load of loads) load();
  }

  /** Launches the sums of squares of all gradients, where steps clip. */
  #clip(present: readonly PresentGroup<B, H>[], scale: B): ClipOfStep<B> | undefined {
    if (this.#clipGradNorm === undefined) return undefined;
    const parts = present.flatMap(({ group }) => group.gradients());
    const length = parts.length * partialsEach;
    if ((this.#partials?.length ?? 0) < length) this.#partials = this.#allocate(length);
    const partials = this.#partials as Binding<B>;
    for (const [part, { x, offset, length }] of parts.entries())
      this.target.launch(clipPartials({ x, scale, partials }, { offset, length, part }));
    const eps = this.#algorithm.clipEps ?? 1e-6;
    return { partials, parts: parts.length, maxNorm: this.#clipGradNorm, eps };
  }

  #refuseShards(): void {
    for (const { params } of this.#paramGroups)
      refuseShard(params, "averages and meters of updates");
  }

  #allocate(length: number): Binding<B> {
    const buffer = allocateResident(this.target, Math.max(length, 1) * 4);
    return { buffer, offset: 0, length, dtype: "float32" };
  }
}

/** The options that are given: undefined keeps the default. */
const given = <T extends object>(options: T): T =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;

/** It runs in every step, and so allocates nothing. */
function requireStepOptions(options: object): void {
  if (typeof options === "function")
    throw new TypeError(
      "step() calls no closure: call loss.backward() first, and then step() without arguments",
    );
  if (typeof options !== "object" || options === null)
    throw new TypeError(
      `step() takes { foundInf?, gradScale? }, not ${shown(options)}: call it without arguments`,
    );
  for (const name in options)
    if (name !== "foundInf" && name !== "gradScale")
      throw new RangeError(
        `step() has no option ${JSON.stringify(name)}: it has foundInf, gradScale`,
      );
}
