import type { Binding } from "@halfstep/device";
import { unpackHalves } from "@halfstep/kernels/optimizers";
import {
  type CarriedPart,
  defineHostOp,
  type FlatVariables,
  type HostFunction,
  type HostOp,
  type HostPart,
  hostLaunch,
  type Runtime,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireCarrier, requireOneOf, requireOptions, requireWeight } from "../arguments.js";
import type { Carrier } from "../carrier.js";
import type { CompressionState } from "../compress/matrix-states.js";
import { type CompressedGroup, PowerSgd, type PowerSgdOptions } from "../compress/power-sgd.js";
import { parametersOf, shareFirst } from "../parameters.js";
import type { ParameterShard } from "../shards/parameter-shard.js";
import { ShardedParameters } from "../shards/sharded-parameters.js";
import { allFinite } from "../wire/all-finite.js";
import {
  Exchange,
  type ExchangeOptions,
  exchangeOptions,
  type MeanOptions,
} from "../wire/exchange.js";
import { AgreedStop } from "./agreed-stop.js";
import { contentsOf } from "./contents.js";
import { packed } from "./packed.js";
import {
  presentIn,
  type Reducible,
  type ReducibleOptimizer,
  reducible,
  type Segment,
} from "./reducible.js";
import { RowsExchange } from "./rows-exchange.js";
import { exchangeFlags, StepExchange } from "./step-exchange.js";

/**
 * "allReduce": every rank steps all parameters. "zero1": every rank steps its shard, and has the moments and masters of that shard alone.
 * All ranks then get the parameters of all, so that adapters that round otherwise cannot make ranks differ.
 */
export type GradientExchangeMode = "allReduce" | "zero1";

const known = [
  ...exchangeOptions,
  ...["mode", "compress", "buckets", "leastBytes", "signal"],
] as const;

/** Flat parameters of which this rank steps its shard. */
export type ShardedVariables = FlatVariables & { readonly shard?: ParameterShard };

/** Options of exchanging gradients. */
export interface GradientExchangeOptions extends ExchangeOptions {
  /** Default "allReduce". */
  readonly mode?: GradientExchangeMode;
  /** With mode "allReduce", exchanges factors of few columns in place of matrices. Default: none. */
  readonly compress?: { readonly powerSgd: PowerSgdOptions } | undefined;
  /** Parts into which the gradients are divided, each exchanged as soon as it is computed. Default 5. */
  readonly buckets?: number;
  /** Least bytes of a part: smaller groups, such as biases, wait for the last. Default 1 MiB. */
  readonly leastBytes?: number;
  /** Tells this rank to stop: see {@link GradientExchange.signal}. Default: none. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of one exchange of gradients. */
export interface ReduceOptions<B = never> {
  /** With `compress`, the scaler's `gradScale()` where gradients carry its scale: residuals are kept without it. */
  readonly gradScale?: B | undefined;
  /** The share of this rank in the global batch, such as its number of samples; 0 leaves its gradients out. Default 1: equal shares. */
  readonly weight?: number;
}

/**
 * Averages gradients over all ranks within a step, while the backward pass goes on. Call {@link reduce} between `backward()` and the step of
 * the scaler or optimizer. Every rank then checks, clips and applies the same bits.
 *
 * @example
 * const exchange = new GradientExchange(carrier, { wire: "float16" });
 * scaler.scale(loss).backward();
 * exchange.reduce(optimizer);
 * scaler.step(optimizer);
 */
export class GradientExchange {
  readonly mode: GradientExchangeMode;
  /**
   * Aborted on all ranks in the same step, a few steps after the option `signal` of one of them: the last step that they take together. It
   * counts calls of {@link reduce}, of which each step has one. With one rank it is that option.
   */
  readonly signal: AbortSignal;
  readonly #exchange: Exchange;
  readonly #stop: AgreedStop;
  readonly #sharded: ShardedParameters[] = [];
  readonly #powerSgd: PowerSgd | undefined;
  readonly #rows: RowsExchange;
  readonly #buckets: number;
  readonly #leastBytes: number;
  /** By the most parts of a group: a plan is cached by its host ops. */
  readonly #ops = new Map<number, HostOp>();

  /**
   * @throws RangeError for a number of buckets or bytes that is not a whole number from 1 on, another mode or wire, and unknown options.
   * TypeError for `compress` with mode "zero1".
   */
  constructor(carrier: Carrier, options: GradientExchangeOptions = {}) {
    const call = "new GradientExchange(carrier, options)";
    requireCarrier(call, carrier);
    requireOptions(call, options, known);
    const { mode = "allReduce", buckets = 5, leastBytes = 2 ** 20, compress, signal } = options;
    requireOneOf("mode", mode, ["allReduce", "zero1"]);
    for (const [name, value] of Object.entries({ buckets, leastBytes }))
      if (!Number.isSafeInteger(value) || value < 1)
        throw new RangeError(`${name} is ${value}: it must be a whole number from 1 on`);
    this.mode = mode;
    this.#stop = new AgreedStop(signal);
    // A single rank has no step to agree on.
    this.signal = (carrier.size === 1 && signal) || this.#stop.signal;
    const { wire, alwaysFloat32, predivide } = options;
    this.#exchange = new Exchange(carrier, { wire, alwaysFloat32, predivide });
    this.#rows = new RowsExchange(this.#exchange);
    if (compress && mode === "zero1")
      throw new TypeError(
        'compress is for mode "allReduce": with "zero1" no rank has whole matrices of gradients',
      );
    if (compress !== undefined && compress?.powerSgd?.rank === undefined)
      throw new TypeError("compress names no way to do so: pass { powerSgd: { rank } }");
    this.#powerSgd = compress && new PowerSgd(this.#exchange, compress.powerSgd);
    this.#buckets = buckets;
    this.#leastBytes = leastBytes;
  }

  /**
   * Gives all ranks the values that rank 0 has: of parameters, and of buffers such as running statistics. Ranks that begin with different
   * values, such as those of other seeds, would train different models. Call it on all ranks, before the optimizer is made.
   *
   * @example
   * await exchange.begin(model.parameters());
   */
  async begin(variables: Iterable<Variable>): Promise<void> {
    const all = parametersOf("begin(variables)", variables);
    if (this.#exchange.carrier.size > 1) await shareFirst(this.#exchange.carrier, all);
  }

  /**
   * With mode "zero1", divides parameters among the ranks: make the optimizer of what this returns. Parameters that are stepped together,
   * such as the groups of one optimizer, are passed together. With mode "allReduce" or one rank they are returned as they are.
   *
   * @example
   * const [params] = exchange.shard(runtime, [flatten(model.parameters())]);
   * const optimizer = new AdamW(runtime.target, params, { lr: 1e-3 });
   */
  shard(runtime: Runtime, groups: readonly FlatVariables[]): readonly ShardedVariables[] {
    if (this.mode === "allReduce" || this.#exchange.carrier.size === 1) return groups;
    const setting = {
      ...{ exchange: this.#exchange, buckets: this.#buckets, leastBytes: this.#leastBytes },
    };
    const sharded = new ShardedParameters(runtime, groups, setting);
    this.#sharded.push(sharded);
    return groups.map((group, i) => ({ ...group, shard: sharded.shards[i] as ParameterShard }));
  }

  /**
   * Gives all ranks the float32 values of all parameters. With mode "zero1" a rank has 16-bit values in place of those that it does not step,
   * where steps read no others. Call it on all ranks, outside steps, before parameters are read in float32: for checkpoints and evaluation.
   */
  async complete(): Promise<void> {
    for (const sharded of this.#sharded) await sharded.complete();
  }

  /**
   * With `compress`, what is kept between steps: the residuals of all ranks, and factors. Undefined without it. All ranks call it together,
   * outside steps and after those before have ended: `await runtime.flush()`.
   */
  async stateDict(): Promise<CompressionState | undefined> {
    return this.#powerSgd?.stateDict();
  }

  /**
   * Goes on from a saved state. In a job of another size each rank takes the mean of the residuals.
   * @throws TypeError without `compress`, and for what is no such state
   */
  loadStateDict(state: CompressionState): void {
    if (!this.#powerSgd) throw new TypeError("gradients are not compressed: there is no state");
    this.#powerSgd.loadStateDict(state);
  }

  /**
   * Records that the present gradients of optimizers are replaced by their means over all ranks; with mode "zero1", those that this rank
   * steps. Within a step.
   *
   * @throws RangeError for a weight below 0 or that is not finite. TypeError where no parameter has a gradient; with mode "zero1" for parameters that {@link shard} did not divide; for scaled gradients whose scale ranks may choose
   * differently, by `targetUnderflow`; and with `compress`, where gradients carry a scale and `gradScale` is left out.
   */
  reduce<B>(
    optimizers: Reducible<B> | readonly Reducible<B>[],
    { weight, gradScale }: ReduceOptions<B> = {},
  ): void {
    requireWeight(weight);
    const all = reducible(Array.isArray(optimizers) ? optimizers : [optimizers]);
    if (this.#exchange.carrier.size === 1) return;
    for (const optimizer of all) this.#refuseScales(optimizer, gradScale !== undefined);
    if (!all.some(({ gradients }, i) => [...gradients.call(all[i])].length > 0))
      throw new TypeError(
        "reduce(): no parameter has a gradient: call it behind backward(). A rank without samples repeats one of another, with weight 0",
      );
    const options = { weight, contents: contentsOf(all) };
    const stop = this.#stop.record();
    if (this.mode === "zero1") {
      for (const sharded of this.#shardedBy(all)) sharded.reduce(options, stop);
      return;
    }
    if (this.#powerSgd) {
      const scale = gradScale && pairOf(gradScale);
      this.#powerSgd.record(all.flatMap(compressedGroups), { ...options, gradScale: scale, stop });
      return;
    }
    const groups = all.flatMap(({ target, gradients }, i) =>
      [...gradients.call(all[i])].map((binding) => ({ target, binding })),
    );
    const step = new StepExchange(groups.length, stop);
    const small = groups.filter(({ binding }) => binding.length * 4 <= this.#leastBytes).length;
    const parts = Math.max(1, this.#buckets - small);
    for (const [group, { target, binding }] of groups.entries())
      target.launch(
        hostLaunch(this.#opOf(parts), [binding], this.#functionOf(step, group, options)),
      );
  }

  /** Refuses gradients whose means would be wrong without a word: of scales that differ, or in residuals of another scale. */
  #refuseScales<B>(optimizer: ReducibleOptimizer<B>, hasScale: boolean): void {
    for (const { marks } of optimizer.gradientMarks?.() ?? [])
      for (const mark of marks) {
        if (mark === "plain") continue;
        if (mark.isUnscaled)
          throw new TypeError(
            "the gradients are unscaled already, so that each rank has looked for infinities in its own alone: call reduce() before unscale(), behind backward()",
          );
        if (mark.countsStores)
          throw new TypeError(
            "targetUnderflow counts what each rank rounds to zero, so ranks would choose different scales: train on several ranks with a rule without it",
          );
        if (this.#powerSgd && !hasScale)
          throw new TypeError(
            "the gradients carry a loss scale, and compressed ones keep what they leave out for steps of other scales: give reduce() { gradScale: scaler.gradScale() }",
          );
      }
  }

  #shardedBy<B>(optimizers: readonly ReducibleOptimizer<B>[]): ReadonlySet<ShardedParameters> {
    const shards = optimizers.flatMap(({ paramGroups = [] }) =>
      paramGroups.map(({ params }) => params.shard),
    );
    const found = new Set(
      shards.map((shard) => {
        const sharded = this.#sharded.find((each) => each.shards.some((own) => own === shard));
        if (sharded) return sharded;
        throw new TypeError(
          'mode "zero1": the parameters of the optimizer are not divided among ranks: make it of what shard() of this exchange returns',
        );
      }),
    );
    for (const sharded of found)
      if (!sharded.shards.every((own) => shards.includes(own)))
        throw new TypeError(
          'mode "zero1": what one call of shard() has divided is averaged together: give reduce() all of its optimizers in a list, or call shard() for each',
        );
    return found;
  }

  #opOf(parts: number): HostOp {
    const known = this.#ops.get(parts);
    if (known) return known;
    const op = defineHostOp({
      name: "exchange gradients",
      bindings: [{ name: "gradients", access: "readwrite", dtypes: ["float32"] }],
      division: {
        parts,
        leastBytes: this.#leastBytes,
        carry: (part, allocate) => this.#carry(part, allocate),
        carryRows: (rows, stage, allocate) => this.#rows.carry(rows, stage, allocate),
      },
    });
    this.#ops.set(parts, op);
    return op;
  }

  /** The launches and operands for a part: packed in 16 bits, or the gradients themselves. */
  #carry<B>(x: Binding<B>, allocate: (bytes: number) => B): CarriedPart<B> {
    const { format } = this.#exchange;
    if (format === "float32") {
      const role = { name: "gradients", access: "readwrite" } as const;
      return { before: [], operands: [{ binding: x, role }], after: [] };
    }
    const { before, codes, header } = packed(x, format, allocate);
    return {
      before,
      operands: [
        { binding: codes, role: { name: "codes", access: "readwrite" } },
        { binding: header, role: { name: "header", access: "readwrite" } },
      ],
      after: [unpackHalves({ codes, header: header.buffer, x })],
    };
  }

  #functionOf(step: StepExchange, group: number, options: MeanOptions): HostFunction {
    const { weight } = options;
    return async (operands, part) => {
      const [numbers, header] = operands;
      if (!numbers) return;
      const label = `bucket ${part.index + 1} of ${part.count} of group ${group}`;
      const mean = { ...options, label };
      if (part.rows) return this.#averageRows(step, group, operands, part, mean);
      if (header) {
        const codes = new Uint16Array(numbers.buffer, 0, part.length);
        const [words, flag] = [
          new Int32Array(header.buffer, 0, 1),
          new Int32Array(header.buffer, 4),
        ];
        if (weight !== 0 && flag[0] !== 0) step.foundNonFinite();
        const agreement = step.agreementWith(group, part);
        words[0] = await this.#exchange.meanOfCodes(codes, words[0] as number, {
          ...{ ...mean, flags: agreement?.flags },
        });
        flag[0] = agreement?.end() ? 1 : 0;
        return;
      }
      const values = new Float32Array(numbers.buffer, 0, part.length);
      if (weight !== 0 && !(await allFinite(values))) step.foundNonFinite();
      const agreement = step.agreementWith(group, part);
      await this.#exchange.mean(values, { ...mean, flags: agreement?.flags });
      if (agreement?.end()) values[0] = Number.NaN;
    };
  }

  /** A stage of a part to which each rank adds rows. */
  async #averageRows(
    step: StepExchange,
    group: number,
    operands: readonly Uint8Array<ArrayBuffer>[],
    part: HostPart,
    mean: MeanOptions,
  ): Promise<void> {
    const key = `${group} ${part.offset}`;
    const isRest = part.rows?.stage === "rest";
    let areFinite: boolean;
    if (isRest) {
      const begun = await this.#rows.begin(operands, part, mean);
      step.begun.set(key, begun);
      areFinite = begun.isFinite;
    } else {
      areFinite = await this.#rows.end(step.begun.get(key), operands, part, mean);
    }
    if (!areFinite && mean.weight !== 0) step.foundNonFinite();
    const agreement = step.agreementWith(group, part);
    if (!agreement) return;
    await exchangeFlags(this.#exchange.carrier, agreement.flags);
    const sums = new Float32Array((operands[2] as Uint8Array<ArrayBuffer>).buffer, 0, 1);
    if (agreement.end() && !isRest) sums[0] = Number.NaN;
  }
}

const pairOf = <B>(buffer: B): Binding<B> => ({ buffer, offset: 0, length: 2, dtype: "float32" });

/** The gradients of an optimizer that are present, by group. */
const compressedGroups = <B>({
  target,
  paramGroups = [],
}: ReducibleOptimizer<B>): readonly CompressedGroup<B>[] =>
  paramGroups.flatMap(({ params }) => {
    const segments = presentIn(params).map((i) => params.segments[i] as Segment);
    const length = Math.max(
      0,
      ...segments.map(({ offset, shape }) => offset + shape.reduce((a, b) => a * b, 1)),
    );
    const gradients = { ...pairOf(params.gradients), length };
    return segments.length > 0 ? [{ target, gradients, segments }] : [];
  });
