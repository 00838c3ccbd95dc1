import type { Binding } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import {
  allocateResident,
  elementwise,
  eq,
  fill,
  identity,
  type ResidentTarget,
  where,
} from "@halfstep/kernels";
import {
  type ClipOfStep,
  controlLength,
  launchUpdate,
  stepControl,
  type UpdateRange,
  type UpdateRule,
  type UpdateTarget,
} from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GradientAdaptation, ParameterGroup } from "./algorithm.js";
import { requireBoolean, requireNumber, requireSame } from "./checks.js";
import { OptimizerStateError } from "./errors.js";
import { gradientsOf, partOf, valuesOf } from "./flat-tensors.js";
import type { GroupExtension } from "./group-extension.js";
import { GroupState, type MomentFormat } from "./group-state.js";
import { type GradientRange, ownGradients, ownParts, ownWords, partUpdates } from "./own-parts.js";
import {
  type ParameterStorage,
  type ResidentStorage,
  residentStorage,
} from "./parameter-storage.js";
import { type RateColumns, RateTable } from "./rate-table.js";
import type { SavedBuffer } from "./saved-buffer.js";
import type { ShardWords } from "./shard.js";
import { requireElementwise } from "./shard-checks.js";
import { type GroupStateDict, joinState, splitState } from "./state-dict.js";
import type { GroupStep, StepObserver } from "./step-observer.js";

const noColumns: RateColumns = { key: "", settledAt: 1, row: () => [0, 0, 0] };

/** One step of a group. */
export interface StepOfGroup<B> {
  /** Index of the group in the optimizer. */
  readonly index: number;
  /** The parts that have gradients, at least one. Those of a shard follow from it. */
  readonly ranges: readonly UpdateRange[];
  readonly foundInf: B;
  readonly scale: B;
  readonly clip: ClipOfStep<B> | undefined;
  /** Seed of stochastic rounding. */
  readonly seed: number;
  readonly observers: Iterable<StepObserver<B>>;
}

/** What the options of a group are checked by. */
export interface GroupRules<H> {
  readonly algorithm: Algorithm<H>;
  /** The names of options that are true or false. */
  readonly flags: readonly string[];
}

/** A parameter group, and its optimizer's buffers on the target. */
export class ResidentGroup<B, H extends CommonOptions> {
  readonly options: ParameterGroup<B, H>;
  readonly rule: UpdateRule;
  readonly storage: ResidentStorage<B>;
  /** One uint32: the number of applied steps. */
  readonly applied: Binding<B>;
  /** The control words of `stepControl` in each step. */
  readonly control: Binding<B>;
  readonly #target: ResidentTarget<B>;
  readonly #algorithm: Algorithm<H>;
  readonly #flags: readonly string[];
  readonly #moments: MomentFormat;
  readonly #state: GroupState<B>;
  readonly #table: RateTable<B>;
  readonly #extension: GroupExtension<B, H> | undefined;
  /** Requested steps: at least as many as were applied. */
  #steps = 0;
  /** Version of the values to which masters, remainders and compensations belong. */
  #valuesVersion: number | undefined;

  /** Allocates all buffers; the options have been validated. */
  constructor(
    target: ResidentTarget<B>,
    options: ParameterGroup<B, H>,
    { algorithm, flags }: GroupRules<H>,
    formats: { readonly storage: ParameterStorage; readonly moments: MomentFormat },
  ) {
    const { params } = options;
    const words = (length: number, dtype: Binding<B>["dtype"]): Binding<B> => ({
      buffer: allocateResident(target, length * 4),
      offset: 0,
      length,
      dtype,
    });
    this.options = options;
    this.rule = algorithm.rule(options);
    requireOwnNames(this.rule, algorithm, options);
    if (params.shard) requireElementwise({ algorithm, rule: this.rule, moments: formats.moments });
    this.#target = target;
    this.#algorithm = algorithm;
    this.#flags = flags;
    this.#moments = formats.moments;
    this.applied = words(1, "uint32");
    this.control = words(controlLength, "float32");
    this.#table = new RateTable(target);
    const initial = algorithm.initial?.(options) ?? {};
    this.#state = new GroupState(target, params, this.rule, formats.moments, initial);
    this.storage = residentStorage(target, params, formats.storage);
    this.#extension = algorithm.extension?.(target, params);
    this.adoptValues();
    this.#bindTable(1);
  }

  /** The parts that have gradients. */
  ranges(): readonly UpdateRange[] {
    return this.#state.ranges();
  }

  /** The gradients that a step reads. */
  gradients(): readonly GradientRange<B>[] {
    return ownGradients(this.options.params);
  }

  /** Throws a RangeError for options out of range, and for those that a group cannot change any more. */
  validate(): void {
    validateOptions(this.options, this.#algorithm, this.#flags);
    const { name, state } = this.#algorithm.rule(this.options);
    if (name === this.rule.name) return;
    // A rule with momentum computes what one without it does where the momentum is 0.
    const { momentumBuffer, ...others } = this.rule.state;
    if (momentumBuffer && Object.keys(others).join() === Object.keys(state).join()) return;
    throw new RangeError(
      `an option of a group now chooses the rule "${name}", but the group was added with "${this.rule.name}": make the optimizer with that option, or add a group that has it`,
    );
  }

  /** Launches a step. */
  step(
    { index, ranges, foundInf, scale, clip, seed, observers }: StepOfGroup<B>,
    adaptation: GradientAdaptation<H> | undefined,
  ): void {
    const { options, applied, control, storage } = this;
    const { params, lr } = options;
    this.#steps++;
    const table = this.#bindTable(this.#steps);
    this.#target.launch(
      stepControl(
        { foundInf, scale, applied: applied.buffer, table, control },
        { lr: typeof lr === "number" ? lr : 1, clip },
      ),
    );
    const adapted = adaptation?.apply(options);
    const rule = adaptation ? adaptation.rule(this.rule) : this.rule;
    const gradients = gradientsOf(params);
    const state = this.#state;
    const extension = this.#extension;
    const own = { options, gradients, control, state: state.buffers, ranges };
    const ruled = this.#algorithm.scalars(adapted?.options ?? options);
    const scalars = {
      ...(adapted ? { ...ruled, ...adapted.scalars } : ruled),
      seedLow: seed >>> 0,
      seedHigh: Math.floor(seed / 2 ** 32),
      stream: index,
    };
    const observed: GroupStep<B> = { index, params, storage, applied, control, scalars };
    let kept: Pick<ResidentStorage<B>, "kind" | "buffers"> = storage;
    for (const observer of observers) kept = observer.before?.(observed) ?? kept;
    extension?.before?.(own);
    const operands = {
      values: valuesOf(params),
      gradients,
      control,
      parameters: kept.kind,
      storage: { ...kept.buffers, applied },
      state: state.buffers,
      inputs: extension?.inputs(options),
      table: () => state.table,
    };
    if (params.shard) {
      const attributes = { scalars, maximize: options.maximize };
      // Rounded copies follow when all values are here.
      const target: UpdateTarget<B> = {
        launch: (launch) => this.#target.launch(launch),
        allocate: (bytes) => this.#target.allocate(bytes),
      };
      for (const { ranges: own, ...buffers } of partUpdates(params))
        launchUpdate(target, rule, { ...operands, ...buffers }, own, attributes);
      params.shard.share();
    } else
      launchUpdate(this.#target, rule, operands, ranges, {
        scalars,
        maximize: options.maximize,
        between: (pass) => extension?.after?.(pass, own),
      });
    for (const observer of observers) observer.after?.(observed);
    this.keepValues();
  }

  /** Declares that masters, remainders and compensations belong to the present values. */
  keepValues(): void {
    const before = this.#valuesVersion;
    this.#valuesVersion = this.options.params.valuesVersion?.();
    this.#target.onRollback?.(() => {
      this.#valuesVersion = before;
    });
  }

  /**
   * Adopts values that other code has written since the last step, such as a loaded state dict. Masters that still round to their
   * values stay, so that model and optimizer can be loaded in any order.
   */
  adoptWritten(): void {
    const { params } = this.options;
    if (params.valuesVersion?.() === this.#valuesVersion) return;
    const { master } = this.storage.buffers;
    if (!master) {
      this.adoptValues();
      return;
    }
    const target = this.#target;
    for (const { values, kept } of this.#pairs(master)) {
      const { shape } = kept;
      const scratch = (dtype: Binding<B>["dtype"]) => {
        const bytes = bytesFor(dtype, kept.length);
        const buffer = target.scratch?.(bytes) ?? target.allocate(bytes);
        return { buffer, offset: 0, length: kept.length, dtype, shape };
      };
      const [rounded, isSame, adopted] = [
        scratch(params.dtype),
        scratch("uint32"),
        scratch("float32"),
      ];
      target.launch(elementwise(identity, [kept], rounded));
      target.launch(elementwise(eq, [values, rounded], isSame));
      // A launch may not read the buffer that it writes.
      target.launch(elementwise(where, [isSame, kept, values], adopted));
      target.launch(elementwise(identity, [adopted], kept));
    }
    this.keepValues();
  }

  /** Sets masters, remainders and compensations from the present values. */
  adoptValues(): void {
    const { master, compensation, remainder } = this.storage.buffers;
    const target = this.#target;
    if (master)
      for (const { values, kept } of this.#pairs(master))
        target.launch(elementwise(identity, [values], kept));
    if (compensation) target.launch(fill(compensation, 0));
    // `fill` supports floats only, and zero has the same bits in all of them.
    if (remainder) target.launch(fill({ ...remainder, dtype: "float32" }, 0));
    this.keepValues();
  }

  /** Waits for the device. */
  async stateDict(): Promise<GroupStateDict> {
    const { params, ...options } = this.options as ParameterGroup<B, CommonOptions>;
    const buffers = this.#saved();
    const bindings = [this.applied, ...buffers.map(({ binding }) => binding)];
    const [count, ...own] = await Promise.all(bindings.map((each) => this.#target.read(each)));
    const values = await this.#collected(buffers, own as ShardWords[]);
    return {
      options: Object.fromEntries(
        Object.entries(options).filter(([, value]) => typeof value !== "function"),
      ),
      applied: count?.[0] as number,
      storage: this.storage.name,
      moments: this.#moments,
      state: splitState(
        params.segments,
        buffers.map((saved, i) => ({ saved, values: values[i] as ArrayLike<number> })),
      ),
    };
  }

  /**
   * Checks a saved state and returns a function that loads it, so that nothing changes before all groups are checked.
   *
   * @throws OptimizerStateError as `FlatOptimizer.loadStateDict`.
   */
  loading(saved: GroupStateDict, index: number): () => void {
    const { options: group } = this;
    requireSame(index, "storage", saved.storage, this.storage.name);
    requireSame(index, "moments", saved.moments, this.#moments);
    const writes = this.#saved().map((buffer) => {
      const whole = joinState(group.params.segments, buffer, saved.state);
      return [buffer.binding, ownWords(group.params, whole, buffer.perElement)] as const;
    });
    const known = Object.entries(saved.options).filter(
      ([name]) => name !== "params" && Object.hasOwn(group, name),
    );
    const keepsSchedule = typeof group.lr === "function";
    const loaded: ParameterGroup<B, H> = {
      ...group,
      ...(Object.fromEntries(known) as Partial<H>),
      ...(keepsSchedule && { lr: group.lr }),
    };
    const { applied } = saved;
    if (!Number.isSafeInteger(applied) || applied < 0)
      throw new OptimizerStateError(
        `the state counts ${applied} applied steps: it must be a whole number`,
      );
    validateOptions(loaded, this.#algorithm, this.#flags);
    this.#requireSameRule(index, this.#algorithm.rule(loaded));
    return () => {
      Object.assign(group, loaded);
      for (const [binding, values] of writes) this.#target.write(binding, values);
      this.#target.write(this.applied, [applied]);
      this.#steps = applied;
      this.keepValues();
    };
  }

  /** The parts of the values that this group steps, each with its part of a buffer of the group's own. */
  #pairs(own: Binding<B>): readonly { readonly values: Shaped<B>; readonly kept: Shaped<B> }[] {
    const { params } = this.options;
    return ownParts(params).map((part) => {
      const shape = [part.length];
      return {
        values: { ...partOf(valuesOf(params), part), shape },
        kept: { ...partOf(own, { ...part, offset: part.at }), shape },
      };
    });
  }

  /** The elements of buffers for all parameters. In a shard, which has a part of them, one buffer after another. */
  async #collected(
    buffers: readonly SavedBuffer<B>[],
    own: readonly ShardWords[],
  ): Promise<readonly ShardWords[]> {
    const { shard } = this.options.params;
    if (!shard) return own;
    const all: ShardWords[] = [];
    for (const [i, { perElement }] of buffers.entries())
      all.push(await shard.collect(own[i] as ShardWords, perElement));
    return all;
  }

  #requireSameRule(index: number, rule: UpdateRule): void {
    if (rule === this.rule) return;
    requireSame(index, "the update rule", rule.name, this.rule.name);
    throw new OptimizerStateError(
      `group ${index}: rule() of ${this.#algorithm.name} gives another object than when the group was made, of the same name "${rule.name}": ` +
        "make each rule once, or by ruleFamily(), and name those apart that differ",
    );
  }

  #bindTable(steps: number): Binding<B> {
    const columns = this.#algorithm.columns?.(this.options) ?? noColumns;
    return this.#table.bind(this.options.lr, columns, steps);
  }

  #saved(): readonly SavedBuffer<B>[] {
    return [...this.#state.saved, ...(this.#extension?.saved ?? []), ...this.storage.saved];
  }
}

type Shaped<B> = Binding<B> & { readonly shape: readonly number[] };

/** Throws a RangeError that names the option, or a TypeError for one of `flags` that is neither true nor false. */
export function validateOptions<H extends CommonOptions>(
  options: H,
  algorithm: Algorithm<H>,
  flags: readonly string[],
): void {
  for (const name of flags) requireBoolean(name, options[name as keyof H]);
  const { lr, weightDecay } = options;
  if (typeof lr !== "function") requireNumber("lr", lr, 0);
  requireNumber("weightDecay", weightDecay, 0);
  algorithm.validate(options);
}

/** Throws a TypeError where an algorithm lacks the columns that its rule declares, or has initial values for unknown states. */
function requireOwnNames<H>(
  { columns = [], state }: UpdateRule,
  { name, columns: tabulated, initial }: Algorithm<H>,
  options: H,
): void {
  if (columns.length > 0 && !tabulated)
    throw new TypeError(
      `optimizer "${name}": its rule declares the columns ${columns.join(", ")} of the rate table: give it columns()`,
    );
  const unknown = Object.keys(initial?.(options) ?? {}).find((own) => !Object.hasOwn(state, own));
  if (unknown !== undefined)
    throw new TypeError(
      `optimizer "${name}": initial() names "${unknown}", which is no state of its rule: it has ${Object.keys(state).join(", ") || "none"}`,
    );
}
