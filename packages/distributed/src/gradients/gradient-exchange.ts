import type { Binding, Launch } from "@halfstep/device";
import {
  packHalves,
  packHeaderWords,
  packScratchWords,
  unpackHalves,
} from "@halfstep/kernels/optimizers";
import {
  type CarriedPart,
  defineHostOp,
  type HostFunction,
  type HostOp,
  type HostPart,
  hostLaunch,
} from "@halfstep/tensor";
import type { Carrier } from "../carrier.js";
import { Exchange, type ExchangeOptions } from "../wire/exchange.js";

/** The part of an optimizer that an exchange of its gradients uses: optimizers of `@halfstep/optim` on a runtime's target have it. */
export interface ReducibleOptimizer<B> {
  readonly target: { launch(launch: Launch<B>): void };
  /** The gradients that are present, whole groups where possible. */
  gradients(): Iterable<Binding<B>>;
}

/** Options of exchanging gradients. */
export interface GradientExchangeOptions extends ExchangeOptions {
  /** Parts into which the gradients are divided, each exchanged as soon as it is computed. Default 5. */
  readonly buckets?: number;
  /** Least bytes of a part: smaller groups, such as biases, wait for the last. Default 1 MiB. */
  readonly leastBytes?: number;
}

/** Options of one exchange of gradients. */
export interface ReduceOptions {
  /** The share of this rank in the global batch, such as its number of samples. Default 1: equal shares. */
  readonly weight?: number;
}

/** The exchanges of one step. */
interface StepExchange {
  /** Groups of gradients, each with its parts that are still to come; absent until its first part. */
  readonly missing: (number | undefined)[];
  /** 1 where a gradient of this rank is infinite or NaN. */
  nonFinite: number;
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
  readonly #exchange: Exchange;
  readonly #buckets: number;
  readonly #leastBytes: number;
  /** By the most parts of a group: a plan is cached by its host ops. */
  readonly #ops = new Map<number, HostOp>();

  /** @throws RangeError for a number of buckets or bytes that is not a whole number from 1 on. */
  constructor(
    carrier: Carrier,
    { buckets = 5, leastBytes = 2 ** 20, ...options }: GradientExchangeOptions = {},
  ) {
    for (const [name, value] of Object.entries({ buckets, leastBytes }))
      if (!Number.isSafeInteger(value) || value < 1)
        throw new RangeError(`${name} is ${value}: it must be a whole number from 1 on`);
    this.#exchange = new Exchange(carrier, options);
    this.#buckets = buckets;
    this.#leastBytes = leastBytes;
  }

  /** Records that the present gradients of optimizers are replaced by their means over all ranks. Within a step. */
  reduce<B>(
    optimizers: ReducibleOptimizer<B> | readonly ReducibleOptimizer<B>[],
    { weight }: ReduceOptions = {},
  ): void {
    if (this.#exchange.carrier.size === 1) return;
    const all = "target" in optimizers ? [optimizers] : optimizers;
    const groups = all.flatMap(({ target, gradients }, i) =>
      [...gradients.call(all[i])].map((binding) => ({ target, binding })),
    );
    const step: StepExchange = { missing: groups.map(() => undefined), nonFinite: 0 };
    const small = groups.filter(({ binding }) => binding.length * 4 <= this.#leastBytes).length;
    const parts = Math.max(1, this.#buckets - small);
    for (const [group, { target, binding }] of groups.entries())
      target.launch(
        hostLaunch(this.#opOf(parts), [binding], this.#functionOf(step, group, weight)),
      );
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
    const { length } = x;
    const codes: Binding<B> = {
      buffer: allocate(length * 2),
      ...{ offset: 0, length, dtype: format },
    };
    const header = allocate(packHeaderWords * 4);
    const scratch = allocate(packScratchWords * 4);
    const words = { buffer: header, offset: 0, length: packHeaderWords, dtype: "uint32" } as const;
    return {
      before: packHalves({ x, codes, header, scratch }),
      operands: [
        { binding: codes, role: { name: "codes", access: "readwrite" } },
        { binding: words, role: { name: "header", access: "readwrite" } },
      ],
      after: [unpackHalves({ codes, header, x })],
    };
  }

  #functionOf(step: StepExchange, group: number, weight: number | undefined): HostFunction {
    return async ([numbers, header], part) => {
      if (!numbers) return;
      const label = `bucket ${part.index + 1} of ${part.count} of group ${group}`;
      const mean = { label, ...(weight !== undefined && { weight }) };
      if (header) {
        const codes = new Uint16Array(numbers.buffer, 0, part.length);
        const [words, flag] = [
          new Int32Array(header.buffer, 0, 1),
          new Int32Array(header.buffer, 4),
        ];
        step.nonFinite |= flag[0] as number;
        words[0] = await this.#exchange.meanOfCodes(codes, words[0] as number, mean);
        flag[0] = await this.#agreedAtEnd(step, group, part);
        return;
      }
      const values = new Float32Array(numbers.buffer, 0, part.length);
      if (!values.every(Number.isFinite)) step.nonFinite = 1;
      await this.#exchange.mean(values, mean);
      if (await this.#agreedAtEnd(step, group, part)) values[0] = Number.NaN;
    };
  }

  /**
   * With the last part of a step, the ranks agree on one number: 1 where a gradient of any of them is infinite or NaN. The means carry it,
   * too; the agreement keeps scales equal whatever a carrier's sum makes of such numbers. 0 with other parts.
   */
  async #agreedAtEnd(step: StepExchange, group: number, part: HostPart): Promise<number> {
    step.missing[group] = (step.missing[group] ?? part.count) - 1;
    if (!step.missing.every((parts) => parts === 0)) return 0;
    const found = Int32Array.of(step.nonFinite);
    await this.#exchange.carrier.max(found, { label: "the overflow flag" });
    return found[0] as number;
  }
}
