import { describe, expect, test } from "vitest";
import { StepsInFlight } from "./steps-in-flight.js";

/** Steps whose fences the test resolves. */
function stepping(most: number) {
  const reached: (() => void)[] = [];
  const inFlight = new StepsInFlight(most, () => new Promise((resolve) => reached.push(resolve)));
  let submitted = 0;
  let room: Promise<void> | undefined;
  return {
    reached,
    /** Submits as many steps as possible; returns the number submitted so far. */
    async submitAll(): Promise<number> {
      for (;;) {
        room ??= inFlight.room();
        if (!(await Promise.race([room.then(() => true), someTurns()]))) return submitted;
        room = undefined;
        inFlight.submitted();
        submitted++;
      }
    },
  };
}

async function someTurns(): Promise<false> {
  for (let turn = 0; turn < 10; turn++) await undefined;
  return false;
}

describe("steps in flight", () => {
  test.each([
    [1, 1],
    [2, 2],
    [3, 3],
    [4, 4],
    [5, 4],
    [8, 8],
  ])("of %i at most, %i are submitted at once", async (most, expected) => {
    expect(await stepping(most).submitAll()).toBe(expected);
  });

  test("go on when their earlier half is done, while the later half runs", async () => {
    const { reached, submitAll } = stepping(4);
    expect([await submitAll(), reached.length]).toEqual([4, 1]);
    reached[0]?.();
    expect([await submitAll(), reached.length]).toEqual([6, 2]);
  });

  describe("where each wait takes 100 ms by itself", () => {
    /** Steps of a device that takes `milliseconds` for each, in the time of the test: how many of 200 ms are in flight in the end. */
    async function mostInFlight(milliseconds: number, steps: number): Promise<number> {
      let time = 0;
      let free = 0;
      let most = 0;
      const ends: number[] = [];
      const wait = async () => {
        const end = Math.ceil(Math.max(free, time + 1) / 100) * 100;
        for (let turn = 0; turn < 50; turn++) await undefined;
        time = Math.max(time, end);
      };
      const inFlight = new StepsInFlight(4, wait, { latency: 100, now: () => time });
      for (let step = 0; step < steps; step++) {
        await inFlight.room();
        inFlight.submitted();
        free = Math.max(free, time) + milliseconds;
        ends.push(free);
        most = Math.max(most, ends.filter((end) => end > time).length);
      }
      return most;
    }

    test("short steps run ahead by as many as a wait takes", async () => {
      expect(await mostInFlight(1, 2000)).toBeGreaterThan(60);
      expect(await mostInFlight(1, 2000)).toBeLessThanOrEqual(128);
    });

    test("long steps do not", async () => {
      expect(await mostInFlight(200, 100)).toBeLessThanOrEqual(8);
    });
  });

  test("fail the step that waits for the one that failed, and nobody else", async () => {
    const failure = new Error("the device was lost");
    const inFlight = new StepsInFlight(2, () => Promise.reject(failure));
    inFlight.submitted();
    await inFlight.room();
    inFlight.submitted();
    await expect(inFlight.room()).rejects.toBe(failure);
  });

  test.each([0, -1, 1.5, Number.NaN])("cannot be %d", (most) => {
    expect(() => new StepsInFlight(most, async () => undefined)).toThrow(
      `maxInFlight is ${most}: it must be a whole number from 1 on`,
    );
  });
});
