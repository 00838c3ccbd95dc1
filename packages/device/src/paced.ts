import { isNode } from "./environment.js";

/** Longest nap, in ms: what else the event loop has to do waits no longer. */
const longest = 1;
/** Shortest nap, in ms. A system that sleeps for less takes as long, and waits that end sooner are only polled. */
const shortest = 0.025;

const { setImmediate: nextTurn } = globalThis as { setImmediate?: (turn: () => void) => unknown };

let waiting = 0;
let isNapping = false;
/** When the latest wait began or ended, in ms. */
let since = 0;
let clock: Int32Array | undefined;

/**
 * Awaits a promise of WebGPU without taking a core for it. Dawn in Node polls once in every turn of the event loop while a
 * promise is pending, and turns follow each other without pause: that takes a core of two from a software GPU. While
 * something is awaited here, each turn ends with a nap of a twentieth of the time waited so far, at most 1 ms, so that an
 * answer comes at most 5 % late; waits of less than half a millisecond have no naps. In a browser it only awaits.
 *
 * Everything that `Device` awaits is paced. Use it around a `mapAsync` or `onSubmittedWorkDone` of your own.
 *
 * @example
 * ```ts
 * await paced(staging.mapAsync(GPUMapMode.READ));
 * ```
 */
export async function paced<T>(promise: Promise<T>): Promise<T> {
  if (!isNode || !nextTurn) return promise;
  since = performance.now();
  waiting++;
  if (!isNapping) nap();
  try {
    return await promise;
  } finally {
    waiting--;
    since = performance.now();
  }
}

function nap(): void {
  isNapping = waiting > 0;
  if (!isNapping) return;
  const milliseconds = Math.min(longest, (performance.now() - since) / 20);
  clock ??= new Int32Array(new SharedArrayBuffer(4));
  if (milliseconds >= shortest) Atomics.wait(clock, 0, 0, milliseconds);
  nextTurn?.(nap);
}
