import { isNode } from "./environment.js";

/** Longest nap, in ms: it bounds the delay of other work in the event loop. */
const longest = 1;
/** Shortest nap, in ms: shorter sleeps take as long, so shorter waits are only polled. */
const shortest = 0.025;

const { setImmediate: nextTurn } = globalThis as { setImmediate?: (turn: () => void) => unknown };

/** Waits of one process. */
interface Pacing {
  /** Awaits a promise of WebGPU. */
  paced<T>(promise: Promise<T>): Promise<T>;
  /** From now on, waits have naps from their second turn on. */
  shareCores(): void;
}

/** Waits that sleep together: one nap a turn of the event loop, however many devices wait. */
export function makePacing(): Pacing {
  /** Whether a device computes on the cores of this process, which polls would take from it. */
  let isSoftware = false;
  let waiting = 0;
  let isNapping = false;
  /** Whether a wait has begun in this turn: Dawn has not polled for it yet. */
  let isNew = false;
  /** When the latest wait began or ended, in ms. */
  let since = 0;
  let clock: Int32Array | undefined;

  const napAfter = (waited: number): number => {
    const milliseconds = Math.min(longest, waited / 20);
    return isSoftware ? Math.max(shortest, milliseconds) : milliseconds;
  };
  const nap = (): void => {
    isNapping = waiting > 0;
    if (!isNapping) return;
    const milliseconds = isNew ? 0 : napAfter(performance.now() - since);
    isNew = false;
    clock ??= new Int32Array(new SharedArrayBuffer(4));
    if (milliseconds >= shortest) Atomics.wait(clock, 0, 0, milliseconds);
    nextTurn?.(nap);
  };
  return {
    async paced(promise) {
      if (!isNode || !nextTurn) return promise;
      since = performance.now();
      waiting++;
      isNew = true;
      if (!isNapping) {
        isNapping = true;
        nextTurn(nap);
      }
      try {
        return await promise;
      } finally {
        waiting--;
        since = performance.now();
      }
    },
    shareCores() {
      isSoftware = true;
    },
  };
}

const ofProcess = /* @__PURE__ */ makePacing();

/** Tells that a device of this process is a software adapter: its waits have naps from their second turn on. */
export const shareCores = (): void => ofProcess.shareCores();

/**
 * Awaits a promise of WebGPU without occupying a core. While a promise is pending, Dawn in Node polls in every turn of the
 * event loop without pause, which takes a core. During this await, each turn ends with a nap of a twentieth of the time
 * waited so far, at most 1 ms. So a result is at most 5 % late, and waits below half a millisecond have no naps, unless a
 * device of the process is a software adapter, which needs the core. The turn in which a wait begins has no nap: the host
 * may work for long in it, and Dawn has not polled yet. In a browser it only awaits.
 *
 * All awaits of `Device` are paced. Use it for your own `mapAsync` or `onSubmittedWorkDone`.
 *
 * @example
 * ```ts
 * await paced(staging.mapAsync(GPUMapMode.READ));
 * ```
 */
export const paced = <T>(promise: Promise<T>): Promise<T> => ofProcess.paced(promise);
