import { expect, test } from "vitest";
import { takesPart } from "./measure.js";

const roundsOf = (rounds: number, affordable: number): number[] =>
  Array.from({ length: rounds }, (_, round) => round).filter((round) =>
    takesPart(round, rounds, affordable),
  );

test("a lane that is fast enough runs in every round", () => {
  expect(roundsOf(5, 5)).toEqual([0, 1, 2, 3, 4]);
  expect(roundsOf(5, 1000)).toEqual([0, 1, 2, 3, 4]);
});

test("a slow lane runs in as many rounds as it can afford, spread evenly, and in two at least", () => {
  expect(roundsOf(9, 3)).toEqual([2, 5, 8]);
  expect(roundsOf(9, 0)).toEqual([4, 8]);
});
