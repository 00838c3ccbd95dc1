import { expect, test } from "vitest";
import { readState, writeState } from "../site/url-state.js";
import { configFields, mostSetups, presets } from "./config.js";
import { nurseryRhyme } from "./nursery-rhyme.js";
import { drawn } from "./tasks/text.js";
import { pointCount, twoMoons } from "./two-moons.js";
import { afterMessage, type Training } from "./use-training.js";

const initial = readState(configFields, "");

test("every preset is an address", () => {
  for (const { config, id } of presets) {
    const state = { ...initial, ...config };
    expect(readState(configFields, writeState(configFields, state)), id).toEqual(state);
    expect(config.setups.length, id).toBeLessThanOrEqual(mostSetups);
  }
  expect(readState(configFields, "?setups=none.toString&task=x&lr=0")).toEqual(initial);
});

test("messages of the worker add up", () => {
  const messages = [
    { type: "device", kind: "gpu", label: "an adapter" },
    { type: "compiling", compiled: 0, total: 2, kernel: "matmul" },
    {
      type: "progress",
      isPlaying: true,
      lanes: [{ id: "float32", points: [{ step: 0, loss: 1, isSkipped: false }], text: "This" }],
    },
    {
      type: "progress",
      isPlaying: true,
      lanes: [{ id: "float32", points: [], text: " is", accuracy: 0.5 }],
    },
  ] as const;
  const begun: Training = { lanes: new Map(), isPlaying: true, probabilities: [] };
  const training = messages.reduce<Training>(afterMessage, begun);
  expect(training).toEqual({
    device: messages[0],
    isPlaying: true,
    probabilities: [],
    lanes: new Map([
      ["float32", { points: messages[2].lanes[0].points, text: "This is", accuracy: 0.5 }],
    ]),
  });
  expect(afterMessage(training, { type: "failed", message: "lost" })).toMatchObject({
    isPlaying: false,
    failure: "lost",
  });
});

test("a lost device takes points back to those of the saved state, and keeps what was written", () => {
  const point = (step: number) => ({ step, loss: 1, isSkipped: false });
  const training: Training = {
    lanes: new Map([["float32", { points: [0, 1, 2].map(point), text: "This", hash: "f00" }]]),
    isPlaying: true,
    probabilities: [],
  };
  const lost = afterMessage(training, { type: "lost", step: 3 });
  expect(lost).toMatchObject({ isPlaying: true, interruption: { lostAt: 3 } });
  const resumed = afterMessage(lost, {
    type: "resumed",
    step: 1,
    lanes: [{ id: "float32", points: [point(0)] }],
  });
  expect(resumed.interruption).toEqual({ lostAt: 3, resumedAt: 1 });
  expect(resumed.lanes.get("float32")).toEqual({ points: [point(0)], text: "This" });
});

test("two moons are the same for the same seed, half of each kind", () => {
  expect(twoMoons(3)).toEqual(twoMoons(3));
  expect(twoMoons(3).points).not.toEqual(twoMoons(4).points);
  expect(twoMoons(3).labels.reduce((a, b) => a + b)).toBe(pointCount / 2);
});

test("characters are drawn by their probabilities", () => {
  expect([0.01, 0.99].map((random) => drawn([0, 100, 0], random))).toEqual([1, 1]);
  expect([0.1, 0.9].map((random) => drawn([1, 1], random))).toEqual([0, 1]);
  expect(drawn([Number.NaN, 0], 0.5)).toBe(0);
});

test("the rhyme ends as it begins", () => {
  expect(nurseryRhyme.startsWith("This is the house that Jack built.\n\nThis is the malt\n")).toBe(
    true,
  );
  expect(nurseryRhyme.endsWith("That lay in the house that Jack built.")).toBe(true);
});
