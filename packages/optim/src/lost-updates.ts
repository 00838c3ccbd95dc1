import type { Binding, HalfDType } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import { allocateResident } from "@halfstep/kernels";
import {
  copyBits,
  countLostUpdates,
  errorUnit,
  exactParameters,
  lostUpdateCounts,
  lostUpdateWords,
  segmentTable,
  storeParameters,
} from "@halfstep/kernels/optimizers";
import { innermost, keptParameters, type Watchable, type WatchedOptimizer } from "./average.js";
import { requireNames, requireOneOf, requireOptimizer, requireOptions } from "./checks.js";
import { type FlatTensors, orderedSegments, valuesOf } from "./flat-tensors.js";
import type { ParameterStorage, ResidentStorage } from "./parameter-storage.js";
import { requireCount } from "./schedules/schedule.js";
import type { GroupStep, KeptGroup } from "./step-observer.js";

/** Options of measuring lost updates. */
export interface LostUpdateOptions {
  /** The format in which float32 parameters are judged; 16-bit ones are judged in their own. Default `"float16"`. */
  readonly format?: HalfDType;
  /** Measures every so many-th step, from the first. Default 1. */
  readonly every?: number;
}

/** The effect of rounding to 16 bits on updates. Shares are from 0 to 1. */
export interface UpdateLosses {
  /** Number of finite updates that are not 0, of finite parameters: the base of the shares. */
  readonly updates: number;
  /** Share of updates that do not change the 16-bit parameter. */
  readonly lost: number;
  /** Share of updates that change it by a different amount. */
  readonly partial: number;
  /** Share of updates that make it infinite. */
  readonly overflowed: number;
  /** Mean of |change − update| / |update|: 0 where none is lost, 1 where all are. */
  readonly meanRelativeError: number;
}

/** Updates of one tensor that rounding loses. */
export interface TensorUpdateLosses extends UpdateLosses {
  readonly name: string;
  /** Index of its parameter group. */
  readonly group: number;
  readonly format: HalfDType;
  /** With every storage except `"plain"`, the counted losses are hypothetical. */
  readonly storage: ParameterStorage;
  /** The remedy, where the storage loses updates. */
  readonly remedy?: string;
}

/** A report of updates that rounding loses. */
export interface LostUpdateReport {
  /** Number of measured steps, skipped ones included. */
  readonly steps: number;
  readonly tensors: readonly TensorUpdateLosses[];
  readonly total: UpdateLosses;
  /** The remedy of the tensor that loses most, where a storage loses updates. */
  readonly remedy?: string;
}

interface Meter<B> {
  readonly group: KeptGroup<B>;
  readonly format: HalfDType;
  readonly before: Binding<B>;
  readonly after: Binding<B>;
  /** True where the step writes float32 numbers of its own to `after`. */
  readonly isApart: boolean;
  readonly chunks: Binding<B>;
  readonly counts: Binding<B>;
}

/** Optimizers with a meter: two meters would both redirect the parameters. */
const metered = new WeakSet<object>();

/**
 * Measures the updates that rounding loses in 16-bit parameters, by tensor. An update below half a unit in the last place
 * changes nothing, which is why AMP keeps masters (Micikevicius et al. 2018, section 3.1). With storage `"plain"` these
 * updates are lost; other storages save them, and for float32 parameters the report shows the loss that 16 bits would cause.
 *
 * The device counts within the optimizer's step, whose results keep their bits. A measured step takes up to four more
 * launches for each group, and 8 bytes for each parameter; no step waits.
 *
 * @example
 * const meter = new LostUpdateMeter(optimizer, { every: 100 });
 * // …train…
 * const { tensors, remedy } = await meter.read();
 */
export class LostUpdateMeter<B> {
  readonly #optimizer: WatchedOptimizer<B>;
  readonly #format: HalfDType;
  readonly #every: number;
  readonly #meters: Map<FlatTensors<B>, Meter<B>> = new Map();
  readonly #unobserve: () => void;
  #begun = 0;
  #isLooking = false;

  /** @throws RangeError for options out of range. TypeError where the optimizer has a meter already. */
  constructor(optimizer: Watchable<B>, options: LostUpdateOptions = {}) {
    requireOptimizer("LostUpdateMeter", optimizer);
    requireOptions("LostUpdateMeter", options);
    requireNames("LostUpdateMeter", options, ["format", "every"]);
    const { format = "float16", every = 1 } = options;
    requireOneOf("format", format, ["float16", "bfloat16"]);
    requireCount("every", every);
    this.#optimizer = innermost(optimizer);
    if (metered.has(this.#optimizer))
      throw new TypeError("the optimizer has a meter already: read that one, or stop() it first");
    metered.add(this.#optimizer);
    this.#format = format;
    this.#every = every;
    this.#unobserve = this.#optimizer.observe({
      begin: () => this.#begin(),
      before: (step) => (this.#isLooking ? this.#before(step) : undefined),
      after: (step) => {
        if (this.#isLooking) this.#after(step);
      },
    });
  }

  /** The counts so far. Waits for the device; no step waits for it. */
  async read(): Promise<LostUpdateReport> {
    const { target } = this.#optimizer;
    const steps = Math.ceil(this.#begun / this.#every);
    const meters = [...this.#meters.values()];
    const groups = this.#optimizer.keptGroups().map(({ params }) => params);
    const counted = await Promise.all(
      meters.map(({ counts }) => target.read(counts, { wait: "background" })),
    );
    const all = meters.flatMap(({ group, format }, i) => {
      const { name: storage } = group.storage;
      const index = groups.indexOf(group.params);
      return orderedSegments(group.params.segments).map(({ segment: { name } }, place) => {
        const counts = countsAt(counted[i] as ArrayLike<number>, place * lostUpdateWords);
        return { tensor: { name, group: index, format, storage }, counts };
      });
    });
    const tensors = all.map(({ tensor, counts }): TensorUpdateLosses => {
      const losses = lossesOf(counts);
      const remedy = remedyOf({ ...tensor, ...losses });
      return { ...tensor, ...losses, ...(remedy && { remedy }) };
    });
    const sum = lostUpdateCounts.map((_, i) =>
      all.reduce((total, { counts }) => total + (counts[i] as number), 0),
    );
    const [worst] = tensors.filter(({ remedy }) => remedy).sort((a, b) => b.lost - a.lost);
    return {
      steps,
      tensors,
      total: lossesOf(sum),
      ...(worst?.remedy && { remedy: worst.remedy }),
    };
  }

  /** Ends the measurement. The counts can still be read. */
  stop(): void {
    this.#unobserve();
    metered.delete(this.#optimizer);
  }

  #begin(): void {
    this.#isLooking = this.#begun % this.#every === 0;
    this.#begun++;
    this.#optimizer.target.onRollback?.(() => void this.#begun--);
  }

  // Where rounding follows the rule, the rule updates separate float32 numbers, from which the storage is then derived.
  #before(step: GroupStep<B>): Pick<ResidentStorage<B>, "kind" | "buffers"> | undefined {
    const { before, after, isApart } = this.#meter(step);
    const { target } = this.#optimizer;
    target.launch(exactParameters({ parameters: keptParameters(step), out: before }));
    if (!isApart) return undefined;
    target.launch(copyBits({ from: before, to: after }));
    return { kind: "master", buffers: { master: after } };
  }

  #after(step: GroupStep<B>): void {
    const { before, after, isApart, chunks, counts, format } = this.#meter(step);
    const { target } = this.#optimizer;
    target.launch(countLostUpdates({ before, after, chunks, counts }, { format }));
    const { control, scalars } = step;
    // Plain values are rounded from the separate numbers by the rule's own launch, like those of a master.
    if (isApart && step.storage.kind !== "inPlace")
      target.launch(
        storeParameters({ exact: after, parameters: keptParameters(step), control }, scalars),
      );
  }

  #meter({ params, storage, applied, control }: GroupStep<B>): Meter<B> {
    const known = this.#meters.get(params);
    if (known) return known;
    const { target } = this.#optimizer;
    const values = valuesOf(params);
    const allocated = (dtype: Binding<B>["dtype"], length: number): Binding<B> => ({
      buffer: allocateResident(target, bytesFor(dtype, Math.max(length, 1))),
      offset: 0,
      length,
      dtype,
    });
    const table = segmentTable(orderedSegments(params.segments).map(({ segment }) => segment));
    const chunks = allocated("uint32", table.chunks.length);
    target.write(chunks, table.chunks);
    const own = params.dtype === "float32" ? values : storage.buffers.master;
    const made: Meter<B> = {
      group: { params, storage, applied, control },
      format: params.dtype === "float32" ? this.#format : params.dtype,
      before: allocated("float32", values.length),
      after: own ?? allocated("float32", values.length),
      isApart: own === undefined,
      chunks,
      counts: allocated("uint32", params.segments.length * lostUpdateWords),
    };
    this.#meters.set(params, made);
    return made;
  }
}

/** The counts of one segment, in the order of `lostUpdateCounts`. */
const countsAt = (words: ArrayLike<number>, at: number): number[] =>
  lostUpdateCounts.map(
    (_, i) => (words[at + 2 * i] as number) + (words[at + 2 * i + 1] as number) * 2 ** 32,
  );

function lossesOf(counts: readonly number[]): UpdateLosses {
  const [updates, lost, partial, overflowed, errors] = counts as [
    number,
    number,
    number,
    number,
    number,
  ];
  const share = (part: number, whole: number): number => (whole === 0 ? 0 : part / whole);
  return {
    updates,
    lost: share(lost, updates),
    partial: share(partial, updates),
    overflowed: share(overflowed, updates),
    meanRelativeError: share(errors * errorUnit, updates - overflowed),
  };
}

function remedyOf({ name, format, storage, lost }: TensorUpdateLosses): string | undefined {
  if (storage !== "plain" || lost === 0) return undefined;
  const share = `${(100 * lost).toFixed(lost < 0.1 ? 1 : 0)} %`;
  const ways =
    format === "float16"
      ? 'storage: "master" (4 bytes a parameter) or "kahan" (2 bytes)'
      : 'storage: "remainder" (2 bytes a parameter, exactly float32), "kahan" (2 bytes) or "stochastic" (none)';
  return `${share} of the updates of ${name} round away, because its ${format} values have no masters: make the optimizer with ${ways}`;
}
