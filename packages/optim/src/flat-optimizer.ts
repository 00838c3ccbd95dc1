import type { Binding, Launch } from "@halfstep/device";
import {
  allocateResident,
  controlLength,
  elementwise,
  fill,
  identity,
  type ResidentTarget,
  stepControl,
} from "@halfstep/kernels";
import { OptimizerStateError } from "./errors.js";
import {
  type FlatTensors,
  flatLength,
  gradientsOf,
  partOf,
  presentRanges,
  valuesOf,
} from "./flat-tensors.js";
import { type RateColumns, RateTable } from "./rate-table.js";
import type { LearningRate } from "./schedule.js";
import {
  type GroupStateDict,
  joinState,
  type OptimizerStateDict,
  splitState,
} from "./state-dict.js";

/**
 * How parameters are kept.
 *
 * - `"float32"`: float32 values, updated in place. Groups of float32 values are always kept so, whatever the storage of others.
 * - `"master"`: 16-bit values with float32 masters, which the optimizer holds and updates; each step rounds them into the
 *   values once.
 * - `"plain"`: 16-bit values without masters. Each update is rounded to nearest, so that updates below half a unit in the
 *   last place are lost: training usually stalls. For comparisons.
 */
export type ParameterStorage = "float32" | "master" | "plain";

/** Options that every optimizer has. */
export interface CommonOptions {
  lr: LearningRate;
  weightDecay: number;
  /** Ascends instead of descending. */
  maximize: boolean;
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

/** The ranges that one update reads and writes. */
export interface UpdateOperands<B> {
  readonly values: Binding<B>;
  readonly gradients: Binding<B>;
  readonly control: Binding<B>;
  readonly copy?: Binding<B>;
  /** float32 state, by name. */
  readonly state: Readonly<Record<string, Binding<B>>>;
}

/** What distinguishes one optimizer from another. */
export interface Algorithm<H> {
  readonly name: string;
  /** Names of the float32 state that each parameter has. */
  stateNames(options: H): readonly string[];
  /** Throws a RangeError that names the option. */
  validate(options: H): void;
  columns(options: H): RateColumns;
  update<B>(operands: UpdateOperands<B>, options: H): Launch<B>;
}

interface Resident<B> {
  readonly applied: Binding<B>;
  readonly control: Binding<B>;
  readonly table: RateTable<B>;
  readonly state: Readonly<Record<string, Binding<B>>>;
  readonly master: Binding<B> | undefined;
  /** Steps asked for: at least as many as were applied. */
  steps: number;
}

/**
 * An optimizer over flat buffers: two launches a group, however many parameters it has, and no number of a step visits
 * the host. It satisfies `ScaledOptimizer` of `@halfstep/grad-scaler`.
 */
export class FlatOptimizer<B, H extends CommonOptions> {
  readonly target: ResidentTarget<B>;
  /** True: `step` multiplies gradients by `1 / scale` itself. */
  readonly stepSupportsAmpScaling: boolean = true;
  readonly #algorithm: Algorithm<H>;
  readonly #defaults: H;
  readonly #storage: ParameterStorage | undefined;
  readonly #groups: ParameterGroup<B, H>[] = [];
  readonly #residents: Map<ParameterGroup<B, H>, Resident<B>> = new Map();
  readonly #noFoundInf: Binding<B>;
  readonly #noScale: Binding<B>;

  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, H>[],
    algorithm: Algorithm<H>,
    defaults: H,
    storage: ParameterStorage | undefined,
  ) {
    this.target = target;
    this.#algorithm = algorithm;
    this.#defaults = defaults;
    this.#storage = storage;
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
    const length = flatLength(params.segments);
    const names = this.#algorithm.stateNames(group);
    const master =
      storageOf(params, this.#storage) === "master" ? this.#allocate(length) : undefined;
    const resident: Resident<B> = {
      applied: { ...this.#allocate(1), dtype: "uint32" },
      control: this.#allocate(controlLength),
      table: new RateTable(this.target),
      state: Object.fromEntries(names.map((name) => [name, this.#allocate(length)])),
      master,
      steps: 0,
    };
    this.#groups.push(group);
    this.#residents.set(group, resident);
    if (master) this.#adopt(params, master);
    resident.table.bind(group.lr, this.#algorithm.columns(group), 1);
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
   */
  step({ foundInf, gradScale }: StepOptions<B> = {}): void {
    for (const group of this.#groups) {
      this.#validate(group);
      const { params } = group;
      const ranges = presentRanges(params);
      if (ranges.length === 0) continue;
      const resident = this.#resident(group);
      const { applied, control, state, master } = resident;
      resident.steps++;
      const columns = this.#algorithm.columns(group);
      this.target.launch(
        stepControl(
          {
            foundInf: foundInf ?? this.#noFoundInf.buffer,
            scale: gradScale ?? this.#noScale.buffer,
            applied: applied.buffer,
            table: resident.table.bind(group.lr, columns, resident.steps),
            control,
          },
          { lr: typeof group.lr === "number" ? group.lr : 1 },
        ),
      );
      for (const range of ranges) {
        const values = partOf(valuesOf(params), range);
        const operands: UpdateOperands<B> = {
          values: master ? partOf(master, range) : values,
          gradients: partOf(gradientsOf(params), range),
          control,
          state: Object.fromEntries(
            Object.entries(state).map(([name, binding]) => [name, partOf(binding, range)]),
          ),
          ...(master && { copy: values }),
        };
        this.target.launch(this.#algorithm.update(operands, group));
      }
    }
  }

  /** Sets every gradient to zero, or makes it absent where the parameters know how. */
  zeroGrad(): void {
    for (const { params } of this.#groups)
      if (params.zeroGrad) params.zeroGrad();
      else this.target.launch(fill(gradientsOf(params), 0));
  }

  /** Copies 16-bit values into their float32 masters: after the values were written by something else than `step()`. */
  reloadMasters(): void {
    for (const group of this.#groups) {
      const { master } = this.#resident(group);
      if (master) this.#adopt(group.params, master);
    }
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
      const { applied } = this.#resident(group);
      const named = Object.entries(this.#buffers(group));
      const [count, ...values] = await Promise.all(
        [applied, ...named.map(([, binding]) => binding)].map((binding) =>
          this.target.read(binding),
        ),
      );
      const buffers = Object.fromEntries(
        named.map(([name], i) => [name, values[i] as ArrayLike<number>]),
      );
      return {
        options: Object.fromEntries(
          Object.entries(options).filter(([, value]) => typeof value !== "function"),
        ),
        applied: count?.[0] as number,
        state: splitState(params.segments, buffers),
      };
    });
    return { algorithm: this.#algorithm.name, groups: await Promise.all(groups) };
  }

  /**
   * Continues from a saved state. Saved options replace those of the groups, but for learning rates that are schedules.
   * With masters, write the parameters first.
   *
   * @throws OptimizerStateError, before anything is changed, where the state comes from another algorithm, model or
   * storage.
   */
  loadStateDict(stateDict: OptimizerStateDict): void {
    const { algorithm, groups } = stateDict;
    if (algorithm !== this.#algorithm.name)
      throw new OptimizerStateError(
        `the state is one of ${algorithm}, not of ${this.#algorithm.name}: make the optimizer that was saved`,
      );
    if (groups.length !== this.#groups.length)
      throw new OptimizerStateError(
        `the state has ${groups.length} parameter groups, but the optimizer ${this.#groups.length}: add the same groups first`,
      );
    const loads = this.#groups.map((group, i) => {
      const saved = groups[i] as GroupStateDict;
      const { segments } = group.params;
      const writes = Object.entries(this.#buffers(group)).map(
        ([name, binding]) =>
          [binding, joinState(segments, binding.length, saved.state, name)] as const,
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
      return { group, loaded, writes, applied: saved.applied };
    });
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

  #resident(group: ParameterGroup<B, H>): Resident<B> {
    return this.#residents.get(group) as Resident<B>;
  }

  #buffers(group: ParameterGroup<B, H>): Readonly<Record<string, Binding<B>>> {
    const { state, master } = this.#resident(group);
    return master ? { ...state, master } : state;
  }

  #adopt(params: FlatTensors<B>, master: Binding<B>): void {
    const shape = [master.length];
    this.target.launch(
      elementwise(identity, [{ ...valuesOf(params), shape }], { ...master, shape }),
    );
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

function requireSegments<B>({ segments }: FlatTensors<B>): void {
  const seen = new Set<string>();
  for (const { name } of segments) {
    if (seen.has(name))
      throw new TypeError(
        `two parameters of a group are named ${name}: give each a name of its own`,
      );
    seen.add(name);
  }
}

function storageOf<B>(
  { dtype, segments }: FlatTensors<B>,
  storage: ParameterStorage | undefined,
): ParameterStorage {
  // A model may keep some parameters in float32 (batch norm): those need no master under any storage.
  if (dtype === "float32") return "float32";
  if (storage === "float32")
    throw new TypeError(
      `storage is "float32", but ${segments[0]?.name ?? "the buffer"} is stored as ${dtype}: ` +
        'use "master", or "plain" to go without masters',
    );
  return storage ?? "master";
}
