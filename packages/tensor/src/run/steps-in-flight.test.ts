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
