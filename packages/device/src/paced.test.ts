import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { makePacing } from "./paced.js";

/** Of each test: devices of other tests in this process have told the process's own to share its cores. */
let pacing = makePacing();
const paced = <T>(promise: Promise<T>): Promise<T> => pacing.paced(promise);

/** A turn of the event loop takes 10 µs here, and a nap what it asks for: nothing depends on the machine. */
const turn = 0.01;
let now = 0;
let turns = 0;
let naps: number[] = [];

beforeEach(() => {
  pacing = makePacing();
  now = 0;
  turns = 0;
  naps = [];
  vi.spyOn(performance, "now").mockImplementation(() => now);
  vi.spyOn(Atomics, "wait").mockImplementation((_array, _index, _value, milliseconds = 0) => {
    naps.push(milliseconds);
    now += milliseconds;
    return "timed-out";
  });
});
afterEach(() => void vi.restoreAllMocks());

/** Resolves after so many milliseconds; asks for every turn of the event loop until then, as Dawn does. */
function after(milliseconds: number): Promise<number> {
  const end = now + milliseconds;
  return new Promise((resolve) => {
    const poll = (): void => {
      turns++;
      now += turn;
      if (now < end) setImmediate(poll);
      else resolve(milliseconds);
    };
    setImmediate(poll);
  });
}

test("a paced wait naps for a twentieth of the time waited, from half a millisecond on and for 1 ms at most", async () => {
  await after(200);
  const plain = turns;
  turns = 0;
  await paced(after(200));
  expect(naps.length).toBeGreaterThan(100);
  expect(Math.min(...naps)).toBeGreaterThanOrEqual(0.025);
  expect(Math.max(...naps)).toBe(1);
  expect(naps).toEqual(naps.toSorted((a, b) => a - b));
  expect(turns).toBeLessThan(plain / 20);
});

test("a wait of less than half a millisecond has no naps", async () => {
  await paced(after(0.4));
  expect(naps).toEqual([]);
});

test("a wait that follows another has no nap before it was polled, however long the host works meanwhile", async () => {
  await paced(after(0.1));
  const next = paced(after(0.1));
  now += 5;
  await next;
  expect(naps).toEqual([]);
});

test("beside a software adapter a wait naps from its second turn on", async () => {
  pacing.shareCores();
  await paced(after(0.4));
  const [first, ...others] = naps;
  expect(first).toBe(0.025);
  expect(others.length).toBeGreaterThan(5);
  expect(turns).toBe(naps.length + 2);
});

test("waits side by side nap in one chain, and what is there already waits for nothing", async () => {
  await paced(after(100));
  const alone = { turns, naps };
  turns = 0;
  naps = [];
  const shared = after(100);
  await Promise.all(Array.from({ length: 50 }, () => paced(shared)));
  // Fifty chains would nap fifty times a turn.
  expect(turns).toBe(alone.turns);
  expect(naps.length).toBe(alone.naps.length);
  naps = [];
  for (let i = 0; i < 20; i++) await paced(Promise.resolve(i));
  expect(naps).toEqual([]);
});

test("the outcome is the promise's own, and the event loop serves others meanwhile", async () => {
  expect(await paced(Promise.resolve(7))).toBe(7);
  await expect(paced(Promise.reject(new RangeError("lost")))).rejects.toThrow(RangeError);
  const order: number[] = [];
  await Promise.all([
    paced(after(60)).then(() => order.push(60)),
    after(20).then(() => order.push(20)),
  ]);
  expect(order).toEqual([20, 60]);
});
