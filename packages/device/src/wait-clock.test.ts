import { expect, test } from "vitest";
import { DeviceLostError } from "./errors.js";
import { WaitClock } from "./wait-clock.js";

/** A device that takes a given time for each piece of work, and tells how long after submission it was asked. */
function simulate(lost: Promise<DeviceLostError> = new Promise(() => {})) {
  const clock = new WaitClock({ lost });
  let total = 0;
  return async (milliseconds: number): Promise<number> => {
    total += 10;
    clock.submitted(total);
    const start = performance.now();
    let asked = 0;
    await clock.wait(async () => {
      asked = performance.now() - start;
      const rest = milliseconds - asked;
      if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
    });
    return asked;
  };
}

test("like work is slept through for most of its time, once it has been seen twice", async () => {
  const run = simulate();
  expect(await run(40)).toBeLessThan(20);
  expect(await run(40)).toBeLessThan(20);
  expect(await run(40)).toBeGreaterThan(25);
  expect(await run(40)).toBeGreaterThan(25);
});

test("a slow first time, when programs are compiled, is not slept through later", async () => {
  const run = simulate();
  await run(200);
  const asked = [await run(1), await run(1), await run(1)];
  expect(Math.max(...asked)).toBeLessThan(100);
});

test("a lost device ends the sleep", async () => {
  let lose: (error: DeviceLostError) => void = () => {};
  const run = simulate(
    new Promise((resolve) => {
      lose = resolve;
    }),
  );
  await run(300);
  await run(300);
  setTimeout(() => lose(new DeviceLostError("gpu", "unknown", "unplugged")), 20);
  expect(await run(300)).toBeLessThan(150);
});
