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
  return { meter, steps, compile };
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
