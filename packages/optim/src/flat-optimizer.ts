import type { Binding } from "@halfstep/device";
import {
  allocateResident,
  type ClipOfStep,
  clipPartials,
  controlLength,
  elementwise,
  fill,
  identity,
  launchUpdate,
  partialsEach,
  type ResidentTarget,
  stepControl,
  type UpdateRange,
  type UpdateRule,
} from "@halfstep/kernels";
import { requireOneOf, requireSame, requireSeed, requireSegments } from "./checks.js";
import { OptimizerStateError } from "./errors.js";
import { type FlatTensors, gradientsOf, partOf, presentRanges, valuesOf } from "./flat-tensors.js";
import type { GroupExtension, MakeExtension } from "./group-extension.js";
import { GroupState, type MomentFormat } from "./group-state.js";
import {
  type ParameterStorage,
  parameterStorages,
  type ResidentStorage,
  residentStorage,
  storageOf,
} from "./parameter-storage.js";
import { type RateColumns, RateTable } from "./rate-table.js";
import type { SavedBuffer } from "./saved-buffer.js";
import type { LearningRate } from "./schedules/schedule.js";
import {
  type GroupStateDict,
  joinState,
  type OptimizerStateDict,
  splitState,
} from "./state-dict.js";
import type { KeptGroup, StepObserver } from "./step-observer.js";

/** Options that every parameter group has. */
export interface CommonOptions {
  lr: LearningRate;
  weightDecay: number;
  /** Ascends instead of descending. */
  maximize: boolean;
}

/** Options of an optimizer as a whole, the same for every optimizer. */
export interface OptimizerOptions {
  /** Default: `"float32"` for float32 values, and else `"master"`. */
  readonly storage?: ParameterStorage;
  /** Default `"float32"`. */
  readonly moments?: MomentFormat;
  /** Of stochastic rounding, of parameters and of moments: a whole number below 2^53. Default 0. */
  readonly seed?: number;
  /**
   * Clips by the 2-norm of all gradients of all groups within `step()`, as `clipGradNorm` does, at the cost of one launch.
   * Default: no clipping.
   */
  readonly clipGradNorm?: number;
}

/** One set of parameters with options of its own, which may be changed between steps. */
export type ParameterGroup<B, H> = H & { readonly params: FlatTensors<B> };

/** A group as it is given to an optimizer: what it leaves out comes from the optimizer's options. */
export type GroupInput<B, H> = Partial<H> & { readonly params: FlatTensors<B> };

/** What a scaler tells an optimizer about one step, on the device. */
export interface StepOptions<B> {
  /** One float32. Where it is not 0, the step changes nothing. */
  readonly foundInf?: B;
  /** A scaler's float32 `[scale, 1 / scale, …]`, where gradients still carry the scale. */
  readonly gradScale?: B;
}

/** What distinguishes one optimizer from another. */
export interface Algorithm<H> {
  readonly name: string;
  /** The rule of a group, decided when it is added. */
  rule(options: H): UpdateRule;
  /** The rule's scalars. */
  scalars(options: H): Readonly<Record<string, number>>;
  /** Throws a RangeError that names the option. */
  validate(options: H): void;
  /** The columns that the rule names. Default: none. */
  columns?(options: H): RateColumns;
  /** What states start from; default 0. */
  initial?(options: H): Readonly<Record<string, number>>;
  /** What a group has besides the passes of its rule. */
  readonly extension?: MakeExtension<H>;
  /** Added to the norm of the gradients where it divides `clipGradNorm`. Default 1e-6, as in torch. */
  readonly clipEps?: number;
}

/** A change of every gradient before a rule sees it, such as that of LARC. */
export interface GradientAdaptation<H> {
  rule(rule: UpdateRule): UpdateRule;
  /** The options that the rule itself sees, and scalars of the adaptation. */
  apply(options: H): { readonly options: H; readonly scalars: Readonly<Record<string, number>> };
}

interface Resident<B, H> {
  readonly applied: Binding<B>;
  readonly control: Binding<B>;
  readonly table: RateTable<B>;
  readonly rule: UpdateRule;
  readonly state: GroupState<B>;
  readonly storage: ResidentStorage<B>;
  readonly extension: GroupExtension<B, H> | undefined;
  /** Steps asked for: at least as many as were applied. */
  steps: number;
}

const noColumns: RateColumns = { key: "", settledAt: 1, row: () => [0, 0, 0] };

/**
 * An optimizer over flat buffers: two launches a group for rules of one pass, however many parameters it has, and no number
 * of a step visits the host. It satisfies `ScaledOptimizer` of `@halfstep/grad-scaler`.
 */
export class FlatOptimizer<B, H extends CommonOptions> {
  readonly target: ResidentTarget<B>;
  /** True: `step` multiplies gradients by `1 / scale` itself. */
  readonly stepSupportsAmpScaling: boolean = true;
  readonly #algorithm: Algorithm<H>;
  readonly #defaults: H;
  readonly #storage: ParameterStorage | undefined;
  readonly #moments: MomentFormat;
  readonly #clipGradNorm: number | undefined;
  readonly #groups: ParameterGroup<B, H>[] = [];
  readonly #residents: Map<ParameterGroup<B, H>, Resident<B, H>> = new Map();
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
    const { storage, moments = "float32", seed = 0, clipGradNorm, ...own } = options;
    requireOneOf("moments", moments, ["float32", "bfloat16", "int8"]);
    if (storage !== undefined) requireOneOf("storage", storage, parameterStorages);
    requireSeed(seed);
    if (clipGradNorm !== undefined && !(clipGradNorm > 0))
      throw new RangeError(`clipGradNorm is ${clipGradNorm}: it must be positive`);
    this.target = target;
    this.#algorithm = algorithm;
    this.#defaults = { ...defaults, ...(own as Partial<H>) };
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

  /** The groups, in the order of their addition. `group.lr = 1e-4` takes effect from the next `step()`. */
  get paramGroups(): readonly ParameterGroup<B, H>[] {
    return this.#groups;
  }

  /**
   * Adds parameters. Their state starts from nothing, and a schedule at its own step 0. Buffers of other groups stay
   * where they are.
   *
   * @throws TypeError where the storage of the values does not fit; RangeError for options out of range.
   */
  addParamGroup(input: GroupInput<B, H>): void {
    const { params } = input;
    const group: ParameterGroup<B, H> = { ...this.#defaults, ...input };
    this.#validate(group);
    requireSegments(params);
    if (this.#groups.some((other) => other.params.values === params.values))
      throw new TypeError(
        `${params.segments[0]?.name ?? "a buffer"} is in two groups: give each parameter to one group only`,
      );
    const { target } = this;
    const rule = this.#algorithm.rule(group);
    const name = storageOf(params, this.#storage);
    const initial = this.#algorithm.initial?.(group) ?? {};
    const resident: Resident<B, H> = {
      applied: { ...this.#allocate(1), dtype: "uint32" },
      control: this.#allocate(controlLength),
      table: new RateTable(target),
      rule,
      state: new GroupState(target, params, rule, this.#moments, initial),
      storage: residentStorage(target, params, name),
      extension: this.#algorithm.extension?.(target, params),
      steps: 0,
    };
    this.#groups.push(group);
    this.#residents.set(group, resident);
    this.#adopt(params, resident.storage);
    resident.table.bind(group.lr, this.#columns(group), 1);
  }

  /** Names of all parameters, for errors. */
  *parameterNames(): Generator<string> {
    for (const { params } of this.#groups) for (const { name } of params.segments) yield name;
  }

  /** The gradients that are present. */
  *gradients(): Generator<Binding<B> & { readonly dtype: "float32"; readonly name: string }> {
    for (const [i, { params }] of this.#groups.entries())
      for (const range of presentRanges(params))
        yield { ...partOf(gradientsOf(params), range), dtype: "float32", name: `group ${i}` };
  }

  /**
   * Updates the parameters that have gradients. Where `foundInf` is set, nothing changes, down to the last bit:
   * parameters, 16-bit values, moments, and the count of applied steps, by which schedules and bias corrections go.
   *
   * @param adaptation Changes gradients on their way into the rule.
   */
  step(options: StepOptions<B> = {}, adaptation?: GradientAdaptation<H>): void {
    for (const group of this.#groups) this.#validate(group);
    for (const observer of this.#observers) observer.begin?.();
    const present = this.#groups
      .map((group, index) => {
        const resident = this.#resident(group);
        return { group, index, resident, ranges: resident.state.ranges() };
      })
      .filter(({ ranges }) => ranges.length > 0);
    const scale = options.gradScale ?? this.#noScale.buffer;
    const clip = this.#clip(present, scale);
    this.#lastControl = present[0]?.resident.control;
    for (const { group, index, resident, ranges } of present) {
      const { applied, control, state, storage } = resident;
      resident.steps++;
      this.target.launch(
        stepControl(
          {
            foundInf: options.foundInf ?? this.#noFoundInf.buffer,
            scale,
            applied: applied.buffer,
            table: resident.table.bind(group.lr, this.#columns(group), resident.steps),
            control,
          },
          { lr: typeof group.lr === "number" ? group.lr : 1, ...(clip && { clip }) },
        ),
      );
      const adapted = adaptation?.apply(group);
      const rule = adaptation ? adaptation.rule(resident.rule) : resident.rule;
      const { params } = group;
      const gradients = gradientsOf(params);
      const { extension } = resident;
      const own = { options: group, gradients, control, state: state.buffers, ranges };
      const scalars = {
        ...this.#algorithm.scalars(adapted?.options ?? group),
        ...adapted?.scalars,
        seedLow: this.#seed >>> 0,
        seedHigh: Math.floor(this.#seed / 2 ** 32),
        stream: index,
      };
      const observed = { index, params, storage, applied, control, scalars };
      let kept: Pick<ResidentStorage<B>, "kind" | "buffers"> = storage;
      for (const observer of this.#observers) kept = observer.before?.(observed) ?? kept;
      extension?.before?.(own);
      launchUpdate(
        this.target,
        rule,
        {
          values: valuesOf(params),
          gradients,
          control,
          parameters: kept.kind,
          storage: { ...kept.buffers, applied },
          state: state.buffers,
          ...(extension && { inputs: extension.inputs(group) }),
          table: () => state.table,
        },
        ranges,
        {
          scalars,
          maximize: group.maximize,
          between: (pass) => extension?.after?.(pass, own),
        },
      );
      for (const observer of this.#observers) observer.after?.(observed);
    }
  }

  /** Control words of the last `step()`, `[0 where it was skipped, …]`; undefined where it updated nothing. */
  get lastControl(): Binding<B> | undefined {
    return this.#lastControl;
  }

  /** The groups as they are kept, in the order of {@link paramGroups}. */
  keptGroups(): readonly KeptGroup<B>[] {
    return this.#groups.map((group) => {
      const { storage, applied, control } = this.#resident(group);
      return { params: group.params, storage, applied, control };
    });
  }

  /** Has steps watched from the next one on, until the function that it returns is called. */
  observe(observer: StepObserver<B>): () => void {
    this.#observers.add(observer);
    return () => void this.#observers.delete(observer);
  }

  /** Throws a TypeError where the rule of a group cannot be adapted. */
  checkAdaptation(adaptation: GradientAdaptation<H>): void {
    for (const group of this.#groups) adaptation.rule(this.#resident(group).rule);
  }

  /** Sets every gradient to zero, or makes it absent where the parameters know how. */
  zeroGrad(): void {
    for (const { params } of this.#groups)
      if (params.zeroGrad) params.zeroGrad();
      else this.target.launch(fill(gradientsOf(params), 0));
  }

  /**
   * Makes masters, remainders and compensations those of the values as they are: after 16-bit values were written by
   * something else than `step()`.
   */
  reloadMasters(): void {
    for (const group of this.#groups) this.#adopt(group.params, this.#resident(group).storage);
  }

  /** How many steps were applied, by group. Waits for the device. */
  async appliedSteps(): Promise<readonly number[]> {
    const counts = this.#groups.map((group) => this.target.read(this.#resident(group).applied));
    return (await Promise.all(counts)).map(([applied]) => applied as number);
  }

  /** Moments, masters, applied steps and options: all but the parameters. Waits for the device. */
  async stateDict(): Promise<OptimizerStateDict> {
    const groups = this.#groups.map(async (group): Promise<GroupStateDict> => {
      const { params, ...options } = group as ParameterGroup<B, CommonOptions>;
      const { applied, storage } = this.#resident(group);
      const buffers = this.#buffers(group);
      const [count, ...values] = await Promise.all(
        [applied, ...buffers.map(({ binding }) => binding)].map((binding) =>
          this.target.read(binding),
        ),
      );
      return {
        options: Object.fromEntries(
          Object.entries(options).filter(([, value]) => typeof value !== "function"),
        ),
        applied: count?.[0] as number,
        storage: storage.name,
        moments: this.#moments,
        state: splitState(
          params.segments,
          buffers.map((saved, i) => ({ saved, values: values[i] as ArrayLike<number> })),
        ),
      };
    });
    return {
      algorithm: this.#algorithm.name,
      seed: this.#seed,
      groups: await Promise.all(groups),
    };
  }

  /**
   * Continues from a saved state. Saved options replace those of the groups, but for learning rates that are schedules.
   * With masters, write the parameters first.
   *
   * @throws OptimizerStateError, before anything is changed, where the state comes from another algorithm, model, storage or
   * format of moments: a state is never converted.
   */
  loadStateDict(stateDict: OptimizerStateDict): void {
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
    const loads = this.#groups.map((group, i) => {
      const saved = groups[i] as GroupStateDict;
      const { segments } = group.params;
      const { storage, rule } = this.#resident(group);
      requireSame(i, "storage", saved.storage, storage.name);
      requireSame(i, "moments", saved.moments, this.#moments);
      const writes = this.#buffers(group).map(
        (buffer) => [buffer.binding, joinState(segments, buffer, saved.state)] as const,
      );
      const known = Object.entries(saved.options).filter(([name]) => name in this.#defaults);
      const options = Object.fromEntries(known) as Partial<H>;
      const keepsSchedule = typeof group.lr === "function";
      const loaded = { ...group, ...options, ...(keepsSchedule && { lr: group.lr }) };
      if (!Number.isSafeInteger(saved.applied) || saved.applied < 0)
        throw new OptimizerStateError(
          `the state counts ${saved.applied} applied steps: it must be a whole number`,
        );
      this.#validate(loaded);
      requireSame(i, "the update rule", this.#algorithm.rule(loaded).name, rule.name);
      return { group, loaded, writes, applied: saved.applied };
    });
    this.#seed = seed;
    for (const { group, loaded, writes, applied } of loads) {
      const resident = this.#resident(group);
      Object.assign(group, loaded);
      for (const [binding, values] of writes) this.target.write(binding, values);
      this.target.write(resident.applied, [applied]);
      resident.steps = applied;
    }
  }

  #validate(group: ParameterGroup<B, H>): void {
    const { lr, weightDecay } = group;
    if (typeof lr !== "function") requireNumber("lr", lr, 0);
    requireNumber("weightDecay", weightDecay, 0);
    this.#algorithm.validate(group);
  }

  /** Launches the sums of squares of all gradients, where steps clip. */
  #clip(
    present: readonly {
      readonly group: ParameterGroup<B, H>;
      readonly ranges: readonly UpdateRange[];
    }[],
    scale: B,
  ): ClipOfStep<B> | undefined {
    if (this.#clipGradNorm === undefined) return undefined;
    const parts = present.flatMap(({ group, ranges }) =>
      ranges.map((range) => ({ x: gradientsOf(group.params), ...range })),
    );
    const length = parts.length * partialsEach;
    if ((this.#partials?.length ?? 0) < length) this.#partials = this.#allocate(length);
    const partials = this.#partials as Binding<B>;
    for (const [part, { x, offset, length }] of parts.entries())
      this.target.launch(clipPartials({ x, scale, partials }, { offset, length, part }));
    const eps = this.#algorithm.clipEps ?? 1e-6;
    return { partials, parts: parts.length, maxNorm: this.#clipGradNorm, eps };
  }

  #columns(group: ParameterGroup<B, H>): RateColumns {
    return this.#algorithm.columns?.(group) ?? noColumns;
  }

  #resident(group: ParameterGroup<B, H>): Resident<B, H> {
    return this.#residents.get(group) as Resident<B, H>;
  }

  #buffers(group: ParameterGroup<B, H>): readonly SavedBuffer<B>[] {
    const { state, storage, extension } = this.#resident(group);
    return [...state.saved, ...(extension?.saved ?? []), ...storage.saved];
  }

  #adopt(params: FlatTensors<B>, { name, buffers }: ResidentStorage<B>): void {
    const { master, compensation, remainder } = buffers;
    if (name === "master" && master) {
      const shape = [master.length];
      this.target.launch(
        elementwise(identity, [{ ...valuesOf(params), shape }], { ...master, shape }),
      );
    }
    if (compensation) this.target.launch(fill(compensation, 0));
    // `fill` knows floats only, and zero is zero in all of them.
    if (remainder) this.target.launch(fill({ ...remainder, dtype: "float32" }, 0));
  }

  #allocate(length: number): Binding<B> {
    const buffer = allocateResident(this.target, Math.max(length, 1) * 4);
    return { buffer, offset: 0, length, dtype: "float32" };
  }
}

/** Throws unless `least ≤ value ≤ most` and `value` is finite. */
export function requireNumber(
  option: string,
  value: number,
  least: number,
  most: number = Number.MAX_VALUE,
): void {
  if (!(value >= least && value <= most))
    throw new RangeError(
      `${option} is ${value}: it must be a number ${most === Number.MAX_VALUE ? `of at least ${least}` : `from ${least} to ${most}`}`,
    );
}
