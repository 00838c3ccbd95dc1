import type { Variable } from "@halfstep/tensor/functional";
import { requireCarrier, requireOptions } from "../arguments.js";
import type { Carrier } from "../carrier.js";
import { parametersOf, readValues, shareFirst, writeValues } from "../parameters.js";
import { subtractTo } from "../wire/arithmetic.js";
import { Breath } from "../wire/breath.js";
import { Exchange } from "../wire/exchange.js";
import { pieces } from "../wire/scatter-mean.js";
import type { Wire } from "../wire/wire.js";

/** Options of DiLoCo. */
export interface DiLoCoOptions {
  /** Steps that each rank takes between two exchanges. Default 20. */
  readonly innerSteps?: number | undefined;
  /** The last step of training, after which ranks exchange whatever its number. Default: none. */
  readonly lastStep?: number | undefined;
  /** Learning rate of the outer step. Default 0.7. */
  readonly lr?: number | undefined;
  /** Nesterov momentum of the outer step. Default 0.8: the paper's 0.9 is slow to settle over few outer steps. */
  readonly momentum?: number | undefined;
  /** The wire of differences. Default "float16". */
  readonly wire?: Wire | undefined;
  /** Tells this rank to stop: see {@link DiLoCo.signal}. Default: none. */
  readonly signal?: AbortSignal | undefined;
}

/** The state of DiLoCo, for checkpoints. */
export interface DiLoCoState {
  /** The parameters that all ranks share, in their order. */
  readonly shared: Float32Array;
  readonly momentum: Float32Array;
}

/**
 * DiLoCo (Douillard and others, 2023): each rank trains alone for some steps, on its own samples and with its own optimizer. Then all
 * take an outer step of SGD with Nesterov momentum, whose gradient is the mean over ranks of the difference between the shared
 * parameters and their own. It is a training hook, and exchanges `innerSteps` times less than an exchange in every step.
 *
 * @example
 * const diloco = new DiLoCo(carrier, model.parameters(), { innerSteps: 20, lastStep: steps });
 * await diloco.begin();
 * await train({ …, hooks: { diloco } });
 */
export class DiLoCo {
  /**
   * Aborted on all ranks after the same outer step, the first after the option `signal` of one of them: they end with equal parameters. With
   * one rank it is that option.
   */
  readonly signal: AbortSignal;
  /** Ranks take equally many steps between two exchanges: a hook with this refuses `onOverflow: "retry"`, by which one takes more. */
  readonly needsEqualSteps = true;
  readonly #parameters: readonly Variable[];
  readonly #exchange: Exchange;
  readonly #innerSteps: number;
  readonly #lastStep: number | undefined;
  readonly #lr: number;
  readonly #momentum: number;
  readonly #wanted: AbortSignal | undefined;
  readonly #agreed = new AbortController();
  #state: DiLoCoState | undefined;
  /** Whether this rank has taken steps since the last outer step. */
  #isApart = false;

  /** @throws TypeError for parameters that are not float32; RangeError for options out of range or unknown */
  constructor(carrier: Carrier, parameters: Iterable<Variable>, options: DiLoCoOptions = {}) {
    const call = "new DiLoCo(carrier, parameters, options)";
    requireCarrier(call, carrier);
    requireOptions(call, options, ["innerSteps", "lastStep", "lr", "momentum", "wire", "signal"]);
    const { innerSteps = 20, lastStep, lr = 0.7, momentum = 0.8, wire = "float16" } = options;
    const { signal } = options;
    if (!Number.isSafeInteger(innerSteps) || innerSteps < 1)
      throw new RangeError(`innerSteps is ${innerSteps}: it must be a whole number from 1 on`);
    if (!(lr > 0) || !Number.isFinite(lr))
      throw new RangeError(`lr is ${lr}: it must be a number above 0`);
    if (!(momentum >= 0 && momentum < 1))
      throw new RangeError(
        `momentum is ${momentum}: it must be from 0 up to, but not including, 1`,
      );
    if (lastStep !== undefined && !(lastStep >= 0))
      throw new RangeError(`lastStep is ${lastStep}: it must be a number from 0 on`);
    this.#parameters = parametersOf(call, parameters);
    for (const { name, dtype } of this.#parameters)
      if (dtype !== "float32")
        throw new TypeError(
          `DiLoCo averages parameters, and ${name} is stored as ${dtype}, in which small changes are lost: keep parameters in float32, and cast by autocast`,
        );
    this.#exchange = new Exchange(carrier, { wire });
    this.#innerSteps = innerSteps;
    this.#lastStep = lastStep;
    this.#lr = lr;
    this.#momentum = momentum;
    this.#wanted = signal;
    this.signal = (carrier.size === 1 && signal) || this.#agreed.signal;
  }

  /** Gives all ranks the parameters of rank 0. Call it before training. */
  async begin(): Promise<void> {
    const shared = await shareFirst(this.#exchange.carrier, this.#parameters);
    this.#state = { shared, momentum: new Float32Array(shared.length) };
  }

  /** After every step: the outer step, where it is due. */
  async afterStep({ step }: { readonly step: number }): Promise<void> {
    this.#isApart = true;
    if (step % this.#innerSteps === 0 || step === this.#lastStep)
      await this.#outerStep(`the outer step after step ${step}`);
  }

  /** At the end of training: an outer step, unless the last step had one. Training that a hook has stopped ends with equal parameters, too. */
  async onEnd(): Promise<void> {
    if (this.#isApart) await this.#outerStep("the last outer step");
  }

  stateDict(): DiLoCoState {
    return this.#begun();
  }

  loadStateDict({ shared, momentum }: DiLoCoState): void {
    const { length } = this.#begun().shared;
    if (shared?.length !== length || momentum?.length !== length)
      throw new RangeError(
        `the state of DiLoCo has ${shared?.length} parameters, and the model ${length}`,
      );
    this.#state = { shared: Float32Array.from(shared), momentum: Float32Array.from(momentum) };
  }

  #begun(): DiLoCoState {
    if (!this.#state) throw new Error("DiLoCo has not begun: await begin() before training");
    return this.#state;
  }

  async #outerStep(label: string): Promise<void> {
    const { shared, momentum } = this.#begun();
    const own = await readValues(this.#parameters);
    const { length } = shared;
    const gradient = new Float32Array(length);
    const next = { shared: new Float32Array(length), momentum: new Float32Array(length) };
    const inPieces = async (
      compute: (rangeOf: (numbers: Float32Array) => Float32Array) => void,
    ): Promise<void> => {
      const breath = new Breath();
      for (const { offset, count } of pieces(length)) {
        compute((numbers) => numbers.subarray(offset, offset + count));
        await breath.after(count);
      }
    };
    await inPieces((of) => subtractTo(of(gradient), of(shared), of(own)));
    const flags = Int32Array.of(this.#wanted?.aborted ? 1 : 0);
    await this.#exchange.mean(gradient, { label, flags });
    const rates = { lr: this.#lr, momentum: this.#momentum };
    await inPieces((of) => {
      of(next.shared).set(of(shared));
      of(next.momentum).set(of(momentum));
      nesterovStep(of(next.shared), of(next.momentum), of(gradient), rates);
    });
    this.#state = next;
    await writeValues(this.#parameters, next.shared);
    this.#isApart = false;
    if (flags[0] !== 0) this.#agreed.abort();
  }
}

/** A step of SGD with Nesterov momentum, in place. */
function nesterovStep(
  values: Float32Array,
  momentum: Float32Array,
  gradient: Float32Array,
  rates: { readonly lr: number; readonly momentum: number },
): void {
  for (let i = 0; i < values.length; i++) {
    momentum[i] = rates.momentum * (momentum[i] as number) + (gradient[i] as number);
    const change = (gradient[i] as number) + rates.momentum * (momentum[i] as number);
    values[i] = (values[i] as number) - rates.lr * change;
  }
}
