import { expect, test } from "vitest";
import { OutcomeLog } from "./outcomes.js";
import type { StepOutcome } from "./step-outcome.js";

const outcome = (step: number): StepOutcome => ({
  step,
  status: "applied",
  optimizers: ["applied"],
  foundInf: false,
  scaleBefore: 1,
  scaleAfter: 1,
  lostBefore: 0,
});

test("a log that nobody drains is bounded, and says what it dropped", async () => {
  const log = new OutcomeLog();
  const stream = log.stream();
  const count = 131_072;
  for (let step = 1; step <= count; step += 1) log.append(outcome(step));
  const { value: first } = await stream.next();
  const kept = log.take();
  expect([first, kept[0]]).toEqual(
    [1, 2].map(() => ({ ...outcome(count / 2 + 1), lostBefore: count / 2 })),
  );
  expect([kept.length, kept[1]?.lostBefore, kept.at(-1)?.step]).toEqual([count / 2, 0, count]);
  expect((await stream.next()).value).toEqual(outcome(count / 2 + 2));
});
