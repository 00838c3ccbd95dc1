import { expect, test } from "vitest";
import { orderOf, planOf, type Schedule, shareOf } from "./rounds.js";

const schedule: Schedule = { rounds: 15, processes: 3, repetition: 50, budget: 15_000 };
const all = Array.from({ length: 15 }, (_, round) => round);

test("rounds are divided among processes, none twice and none left out", () => {
  const sharesOf = (rounds: number, processes: number) =>
    Array.from({ length: processes }, (_, process) => {
      const { first, end } = shareOf(process, { ...schedule, rounds, processes });
      return [first, end];
    });
  expect(sharesOf(15, 3)).toEqual([
    [0, 5],
    [5, 10],
    [10, 15],
  ]);
  expect(sharesOf(7, 2)).toEqual([
    [0, 4],
    [4, 7],
  ]);
  expect(sharesOf(2, 1)).toEqual([[0, 2]]);
});

test("each lane runs before another as often as after it", () => {
  expect(all.slice(0, 3).map((round) => orderOf(["ours", "theirs"], round))).toEqual([
    ["ours", "theirs"],
    ["theirs", "ours"],
    ["ours", "theirs"],
  ]);
});

test("a quick lane runs in every round, with calls that fill a repetition", () => {
  expect(planOf(schedule, 10, true)).toEqual({ calls: 5, rounds: all });
  expect(planOf(schedule, 0.001, true)).toEqual({ calls: 100, rounds: all });
});

test("a slow lane runs in as many rounds as it can afford, spread evenly, and in two at least", () => {
  expect(planOf(schedule, 5000, true)).toEqual({ calls: 1, rounds: [0, 5, 10] });
  expect(planOf(schedule, 60_000, true)).toEqual({ calls: 1, rounds: [0, 8] });
});

test("a lane that is not renewed has the rounds of the first process", () => {
  expect(planOf(schedule, 10, false).rounds).toEqual([0, 1, 2, 3, 4]);
  expect(planOf(schedule, 60_000, false).rounds).toEqual([0, 3]);
});
