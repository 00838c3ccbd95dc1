import { expect, test } from "vitest";
import { labelsOf } from "./neighbourhood.js";

test("ticks are named where there is room", () => {
  const near = [253, 254, 255, 256, 258, 260, 262];
  const namesIn = (width: number) =>
    labelsOf(near, 256, width, (value) => width / 2 + ((value - 256) * width) / 14).map(
      ({ text }) => text,
    );
  expect(namesIn(640)).toEqual(["253", "254", "255", "256", "258", "260", "262"]);
  expect(namesIn(300)).toEqual(["254", "256", "260"]);
  expect(namesIn(80)).toEqual(["256"]);
});
