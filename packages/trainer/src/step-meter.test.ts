import { expect, test } from "vitest";
import { reportInterval } from "./reporter.js";
import { StepMeter } from "./step-meter.js";

/** A meter whose clock the test moves. */
function opened() {
  let now = 0;
  const meter = new StepMeter(undefined, () => now);
  let step = 0;
  const steps = (count: number, milliseconds: number): void => {
    for (let i = 0; i < count; i++) {
      meter.begin();
      now += milliseconds;
      meter.end(++step);
    }
  };
  const compile = (milliseconds: number): void => {
    meter.compiling({ compiled: 0, total: 1, kernel: "matmul" });
    now += milliseconds;
    meter.compiling({ compiled: 1, total: 1, kernel: "matmul" });
  };
  const pause = (milliseconds: number): void => {
    meter.pause();
    now += milliseconds;
  };
  return { meter, steps, compile, pause };
}

test("a short run takes its mean, without compiling", () => {
  const { meter, steps, compile } = opened();
  compile(5000);
  steps(4, 10);
  expect(meter.medianMilliseconds()).toBe(10);
});

test("programs that are compiled later spoil no window", () => {
  const { meter, steps, compile } = opened();
  steps(2 * reportInterval, 10);
  compile(5000);
  steps(2 * reportInterval, 10);
  expect(meter.medianMilliseconds()).toBe(10);
});

test("evaluations and checkpoints are no time of steps, however often they come", () => {
  for (const every of [1, 3, reportInterval]) {
    const { meter, steps, pause } = opened();
    for (let i = 0; i < 12; i++) {
      steps(every, 10);
      pause(700);
      // Another hook, and a checkpoint.
      pause(50);
    }
    expect(meter.medianMilliseconds()).toBe(10);
  }
});

test("a short run with a pause in it takes the mean of its steps", () => {
  const { meter, steps, pause, compile } = opened();
  compile(300);
  steps(2, 10);
  pause(100);
  steps(2, 20);
  pause(100);
  expect(meter.medianMilliseconds()).toBe(15);
});
