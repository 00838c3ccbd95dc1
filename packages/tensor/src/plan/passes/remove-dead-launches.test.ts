import { expect, test } from "vitest";
import { graph, inPlace, names, opaque, resident, transient } from "../../../test/graphs.js";
import { removeDeadLaunches } from "./remove-dead-launches.js";

test("what nobody reads goes, and with it what only it read", () => {
  const [a, b, c] = [transient(), transient(), transient()];
  const before = graph([opaque([], [a]), opaque([a], [b]), opaque([b], [c])]);
  expect(removeDeadLaunches(before).nodes).toEqual([]);
});

test("what is kept stays, with all that it depends on, in order", () => {
  const [a, b, dead] = [transient(), transient(), transient()];
  const before = graph([opaque([], [a]), opaque([a], [dead]), opaque([a], [b])], {
    kept: [b.buffer],
  });
  expect(removeDeadLaunches(before).nodes).toEqual([before.nodes[0], before.nodes[2]]);
});

test("writes to residents stay", () => {
  const [a, w] = [transient(), resident()];
  const before = graph([opaque([], [a]), opaque([a], [w]), inPlace(w)]);
  expect(names(removeDeadLaunches(before))).toEqual(["opaque", "opaque", "inPlace"]);
});

test("one wanted result of several keeps the launch", () => {
  const [a, b] = [transient(), transient()];
  const before = graph([opaque([], [a, b])], { kept: [b.buffer] });
  expect(removeDeadLaunches(before).nodes).toHaveLength(1);
});

test("a change in place is wanted where its buffer is, and wants what was there before", () => {
  const [a, b] = [transient(), transient()];
  const before = graph([opaque([], [a]), inPlace(a), opaque([], [b]), inPlace(b)], {
    kept: [a.buffer],
  });
  expect(removeDeadLaunches(before).nodes).toEqual(before.nodes.slice(0, 2));
});
