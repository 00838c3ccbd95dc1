import type { Binding } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import { allocateResident, elementwise, identity, type ResidentTarget } from "@halfstep/kernels";
import {
  averageControl,
  averageControlLength,
  averageParameters,
  copyBits,
  exactParameters,
  type KeptParameters,
} from "@halfstep/kernels/optimizers";
import { requireOptimizer, requireState } from "./checks.js";
import { AverageStateError, OptimizerStateError } from "./errors.js";
import { type FlatTensors, flatLength, partOf, segmentRanges, valuesOf } from "./flat-tensors.js";
import { type RateColumns, RateTable } from "./rate-table.js";
import { elementsAt, type SavedArrays } from "./saved-buffer.js";
import type { Schedule } from "./schedules/schedule.js";
import { joinState, splitState } from "./state-dict.js";
import type { KeptGroup, StepObserver, WritableGroup } from "./step-observer.js";

/** The part of an optimizer that averages and meters use. Every optimizer of this package has it. */
export interface WatchedOptimizer<B> {
  readonly target: ResidentTarget<B>;
  readonly lastControl: Binding<B> | undefined;
  readonly storages: readonly string[];
  keptGroups(): readonly WritableGroup<B>[];
  observe(observer: StepObserver<B>): () => void;
}

/** An optimizer, or a wrapper around one, such as `LARC` and `FP16Optimizer`. */
export type Watchable<B> = WatchedOptimizer<B> | { readonly optimizer: Watchable<B> };

/** The optimizer inside all wrappers. */
export function innermost<B>(optimizer: Watchable<B>): WatchedOptimizer<B> {
  let inner = optimizer;
  while (!("keptGroups" in inner)) inner = inner.optimizer;
  return inner;
}

/** The parameters of a group, in the form for kernels. */
export const keptParameters = <B>({ params, storage }: KeptGroup<B>): KeptParameters<B> => ({
  values: valuesOf(params),
  kind: storage.kind,
  storage: storage.buffers,
});

/** One parameter group of a saved average. */
export interface GroupAverageDict {
  /** Number of applied steps in the average. */
  readonly updates: number;
  /** By parameter: `parameters.weight.average`, in float32. */
  readonly parameters: Readonly<Record<string, SavedArrays>>;
}

/** The saved state of an average. */
export interface AverageStateDict {
  readonly average: string;
  readonly groups: readonly GroupAverageDict[];
}

interface GroupAverage<B> {
  readonly group: WritableGroup<B>;
  readonly average: Binding<B>;
  readonly updates: Binding<B>;
  readonly control: Binding<B>;
  /** The values that averages have replaced; allocated on first use. */
  backup: Binding<B> | undefined;
}

/** The average that the model of an optimizer has now instead of its own parameters. */
const holders = new WeakMap<object, object>();

const noColumns: RateColumns = { key: "", settledAt: 1, row: () => [0, 0, 0] };

/**
 * A running average of the parameters of an optimizer: float32 numbers of the exact parameters (masters, remainders and
 * compensations included) under every storage. It is kept on the device, and `update()` changes it only if the previous step
 * was applied, which the device decides. Until the first update it equals the initial parameters.
 *
 * An update takes two launches for each group. Memory: 4 bytes for each parameter, and a copy of the values while the model
 * has the averages. Buffers of modules (running statistics of batch norm) are not parameters: after a swap, run some batches
 * in training mode.
 */
export class ParameterAverage<B> {
  readonly #optimizer: WatchedOptimizer<B>;
  readonly #name: string;
  readonly #weights: Schedule;
  readonly #table: RateTable<B>;
  readonly #averages: Map<FlatTensors<B>, GroupAverage<B>> = new Map();
  /** Requested updates: at least as many as any group had. */
  #asked = 0;
  #refusesSteps = false;

  /** @internal `weights(n)` is the weight of the parameters in update n, from 0: `average += weight · (p − average)`. */
  constructor(optimizer: Watchable<B>, name: string, weights: Schedule) {
    requireOptimizer(name, optimizer);
    this.#optimizer = innermost(optimizer);
    this.#name = name;
    this.#weights = weights;
    this.#table = new RateTable(this.#optimizer.target);
    this.#table.bind(weights, noColumns, 1);
    this.#groups();
  }

  /**
   * Adds the parameters after the last `step()` of the optimizer to the average. After a skipped step no bit changes. Call
   * it once after each step.
   *
   * @throws AverageStateError while the model has the averages.
   */
  update(): void {
    this.#refuseWhileHeld("update() would average the averages");
    const step = this.#optimizer.lastControl;
    if (!step) return;
    const { target } = this.#optimizer;
    const table = this.#table.bind(this.#weights, noColumns, ++this.#asked);
    for (const { group, average, updates, control } of this.#groups()) {
      target.launch(averageControl({ step, updates: updates.buffer, table, control }));
      target.launch(averageParameters({ parameters: keptParameters(group), control, average }));
    }
  }

  /**
   * Replaces the model's parameters by the averages, rounded to their storage, to evaluate or save the model. Until
   * `restore()` the optimizer refuses to step.
   *
   * @throws AverageStateError where the model already has these or other averages.
   */
  swap(): void {
    this.#refuseWhileHeld("the model has averages already");
    if (!this.#refusesSteps) {
      this.#refusesSteps = true;
      this.#optimizer.observe({
        begin: () => this.#refuseWhileHeld("step() would train from averaged parameters", this),
      });
    }
    this.#hold(this);
    const { target } = this.#optimizer;
    for (const own of this.#groups()) {
      const values = valuesOf(own.group.params);
      own.group.adoptWritten();
      own.backup ??= { ...values, buffer: allocateResident(target, bytesOf(values)) };
      for (const range of segmentRanges(own.group.params)) {
        const [from, to] = [partOf(values, range), partOf(own.backup, range)];
        const average = { ...partOf(own.average, range), shape: [range.length] };
        target.launch(copyBits({ from, to }));
        target.launch(elementwise(identity, [average], { ...from, shape: [range.length] }));
      }
    }
  }

  /**
   * Restores the model's own parameters, bit for bit.
   *
   * @throws AverageStateError where it has them.
   */
  restore(): void {
    if (holders.get(this.#optimizer) !== this)
      throw new AverageStateError(
        "restore() without swap(): the model does not have these averages",
      );
    this.#hold(undefined);
    for (const { group, backup } of this.#averages.values())
      if (backup) {
        const { target } = this.#optimizer;
        for (const range of segmentRanges(group.params)) {
          const to = partOf(valuesOf(group.params), range);
          target.launch(copyBits({ from: partOf(backup, range), to }));
        }
        group.keepValues();
      }
  }

  /**
   * Runs a function, such as an evaluation, while the model has the averages.
   *
   * @example
   * const accuracy = await ema.during(() => evaluate(model));
   */
  async during<T>(run: () => T | Promise<T>): Promise<T> {
    this.swap();
    try {
      return await run();
    } finally {
      this.restore();
    }
  }

  /** Number of applied steps in the averages, by group. Waits for the device. */
  async updates(): Promise<readonly number[]> {
    const counts = this.#groups().map(({ updates }) => this.#optimizer.target.read(updates));
    return (await Promise.all(counts)).map(([count]) => count as number);
  }

  /** The averages in float32, and their numbers of steps. Waits for the device. */
  async stateDict(): Promise<AverageStateDict> {
    const { target } = this.#optimizer;
    const groups = this.#groups().map(async ({ group, average, updates }) => {
      const [count, values] = await Promise.all([target.read(updates), target.read(average)]);
      const { segments } = group.params;
      const saved = elementsAt("average", average, segments);
      return {
        updates: count[0] as number,
        parameters: splitState(segments, [{ saved, values }]),
      };
    });
    return { average: this.#name, groups: await Promise.all(groups) };
  }

  /**
   * Continues from a saved average. Options (a decay) are not part of the state.
   *
   * @throws OptimizerStateError, before anything is changed, where it is another kind of average or of another model.
   */
  loadStateDict(stateDict: AverageStateDict): void {
    requireState("an average", stateDict, ["average", "groups"]);
    const { average: name, groups } = stateDict;
    if (name !== this.#name)
      throw new OptimizerStateError(
        `the state is one of ${name}, not of ${this.#name}: make the average that was saved`,
      );
    const own = this.#groups();
    if (groups.length !== own.length)
      throw new OptimizerStateError(
        `the state has averages of ${groups.length} parameter groups, but the optimizer ${own.length}: add the same groups first`,
      );
    const loads = own.map(({ group, average, updates }, i) => {
      const saved = groups[i] as GroupAverageDict;
      if (!Number.isSafeInteger(saved.updates) || saved.updates < 0)
        throw new OptimizerStateError(
          `the state counts ${saved.updates} updates: it must be a whole number`,
        );
      const { segments } = group.params;
      const buffer = elementsAt("average", average, segments);
      return { average, updates, saved, values: joinState(segments, buffer, saved.parameters) };
    });
    const { target } = this.#optimizer;
    for (const { average, updates, saved, values } of loads) {
      target.write(average, values);
      target.write(updates, [saved.updates]);
      this.#asked = Math.max(this.#asked, saved.updates);
    }
  }

  /** The average of each group; that of a later group begins with its present parameters. */
  #groups(): readonly GroupAverage<B>[] {
    const { target } = this.#optimizer;
    return this.#optimizer.keptGroups().map((group) => {
      const known = this.#averages.get(group.params);
      if (known) return known;
      const words = (length: number): Binding<B> => ({
        buffer: allocateResident(target, Math.max(length, 1) * 4),
        offset: 0,
        length,
        dtype: "float32",
      });
      const made: GroupAverage<B> = {
        group,
        average: words(flatLength(group.params.segments)),
        updates: { ...words(1), dtype: "uint32" },
        control: words(averageControlLength),
        backup: undefined,
      };
      target.launch(exactParameters({ parameters: keptParameters(group), out: made.average }));
      this.#averages.set(group.params, made);
      target.onRollback?.(() => void this.#averages.delete(group.params));
      return made;
    });
  }

  #refuseWhileHeld(what: string, by: object | undefined = holders.get(this.#optimizer)): void {
    const holder = holders.get(this.#optimizer);
    if (holder && holder === by)
      throw new AverageStateError(
        `${what}: call restore() first, which gives the model its own parameters back`,
      );
  }

  #hold(holder: object | undefined): void {
    const optimizer = this.#optimizer;
    const set = (held: object | undefined): void => {
      if (held) holders.set(optimizer, held);
      else holders.delete(optimizer);
    };
    const before = holders.get(optimizer);
    set(holder);
    // The launches of a dropped recording have moved no parameters.
    optimizer.target.onRollback?.(() => set(before));
  }
}

const bytesOf = <B>({ length, dtype }: Binding<B>): number => bytesFor(dtype, Math.max(length, 1));
