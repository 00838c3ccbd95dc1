import { type DispatchedKernel, EmptyDispatches } from "./empty-dispatches.js";

/** Further devices of the same adapter, which compile programs for this one. */
export interface CompilerDevices {
  /** Devices that may be open at a time. */
  readonly most: number;
  open(): Promise<GPUDevice>;
}

/** Milliseconds of compiling after which other devices help. Programs that the driver finds in its cache on disk rarely take so long. */
const patience = 100;

interface Job {
  readonly kernel: DispatchedKernel;
  readonly pipeline: GPUComputePipeline;
  readonly done: () => void;
}

/**
 * Compiles programs with drivers that compile a program at its first dispatch, in one thread for each device, as Mesa's software driver
 * does. An empty dispatch is enough. Other devices compile a share in threads of their own. This one finds those programs in the driver's
 * cache when it runs them; it does not look at once, because the driver writes its cache with low priority.
 */
export class DriverCompiler {
  readonly #own: EmptyDispatches;
  readonly #others: CompilerDevices | undefined;
  readonly #patience: number;
  /** Programs that no device compiles yet. */
  readonly #waiting: Job[] = [];
  #isCompiling = false;
  #helpers = 0;
  #isHelpRefused = false;

  constructor(
    gpu: GPUDevice,
    others: CompilerDevices | undefined,
    milliseconds: number = patience,
  ) {
    this.#own = new EmptyDispatches(gpu);
    this.#others = others;
    this.#patience = milliseconds;
  }

  /** Resolves when the driver has compiled the program of a pipeline. */
  compile(kernel: DispatchedKernel, pipeline: GPUComputePipeline): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ kernel, pipeline, done });
      void this.#compileAll();
    });
  }

  async #compileAll(): Promise<void> {
    if (this.#isCompiling) return;
    this.#isCompiling = true;
    const started = performance.now();
    for (let job = this.#waiting.shift(); job; job = this.#waiting.shift()) {
      if (this.#others && performance.now() - started >= this.#patience)
        this.#getHelp(this.#others);
      await this.#own.dispatch(job.kernel, job.pipeline);
      job.done();
    }
    this.#isCompiling = false;
    this.#own.destroy();
  }

  #getHelp(others: CompilerDevices): void {
    while (!this.#isHelpRefused && this.#helpers < Math.min(others.most, this.#waiting.length))
      void this.#help(others);
  }

  async #help(others: CompilerDevices): Promise<void> {
    this.#helpers++;
    try {
      const gpu = await others.open();
      const dispatches = new EmptyDispatches(gpu);
      for (let job = this.#waiting.shift(); job; job = this.#waiting.shift()) {
        await dispatches.dispatch(job.kernel);
        job.done();
      }
      gpu.destroy();
    } catch {
      // There is no other device: this one compiles everything.
      this.#isHelpRefused = true;
    } finally {
      this.#helpers--;
    }
  }
}
