import { expect, test } from "vitest";
import { setupOf } from "../train/setups.js";
import { type Box, layoutOf, neighbourOf } from "./layout.js";
import { lifeText } from "./memory.js";
import { planStage } from "./plan-stages.js";
import { passesUntil, type StageId, stages } from "./stages.js";
import { type StepView, viewOf } from "./step-view.js";
import { stories } from "./stories.js";

const viewAt = (stage: StageId, setup: "float16" | "float32" = "float16"): StepView =>
  viewOf(planStage("moons", setupOf(setup), stage), setupOf(setup).recipe);
const recorded = viewAt("recorded");
const planned = viewAt("reuseMemory");

test("stages add one pass after the other, and the last one has all", () => {
  expect(passesUntil("recorded")).toEqual([]);
  expect(passesUntil("foldCasts")).toEqual(["removeDeadLaunches", "foldCasts"]);
  expect(passesUntil("reuseMemory")).toHaveLength(stages.length - 1);
});

test("each op has the format that it runs in and the reason of its recipe", () => {
  const ops = recorded.launches.flatMap(({ ops }) => ops);
  const reasonOf = (name: string): string | undefined => ops.find((op) => op.name === name)?.why;
  expect(reasonOf("linear")).toBe("products and convolutions are lowered");
  expect(reasonOf("crossEntropy")).toBe("needs float32's range or digits");
  expect(reasonOf("gradient of linear")).toBe("gradients have the dtype of their values");
  expect(ops.find(({ name }) => name === "linear")).toMatchObject({
    module: "layers.0",
    runsIn: "float16",
  });
  const formats = new Set(viewAt("recorded", "float32").launches.map(({ format }) => format));
  expect([...formats]).toEqual(["float32"]);
});

test("planning folds casts into launches that stand for them, and values share memory", () => {
  const casts = recorded.launches.flatMap(({ kernel }, i) => (kernel === "identity" ? [i] : []));
  expect(casts.length).toBeGreaterThan(3);
  expect(planned.launches.some(({ kernel }) => kernel === "identity")).toBe(false);
  expect(recorded.slots.length).toBe(recorded.values.length);
  expect(planned.slots.length).toBeLessThan(planned.values.length);
});

test("operands know the launch that wrote them", () => {
  for (const { launches } of [recorded, planned])
    for (const [i, { operands }] of launches.entries())
      for (const { writer } of operands) if (writer !== undefined) expect(writer).toBeLessThan(i);
  const update = recorded.launches.findLast(({ kernel }) => kernel.startsWith("update"));
  expect(update?.operands.some(({ writer }) => writer !== undefined)).toBe(true);
});

test.each([320, 1100])("boxes stay apart in a drawing of %d pixels", (width) => {
  const { boxes, bands, edges, height } = layoutOf(recorded.launches, width);
  expect(boxes).toHaveLength(recorded.launches.length);
  const overlap = (a: Box, b: Box): boolean =>
    a.left < b.left + b.width &&
    b.left < a.left + a.width &&
    a.top < b.top + b.height &&
    b.top < a.top + a.height;
  for (const [i, box] of boxes.entries()) {
    expect(box.left).toBeGreaterThanOrEqual(0);
    expect(box.left + box.width).toBeLessThanOrEqual(width);
    expect(box.top + box.height).toBeLessThanOrEqual(height);
    for (const other of boxes.slice(i + 1)) expect(overlap(box, other)).toBe(false);
  }
  expect(bands.map(({ label }) => label)).toEqual([
    "weights, loss scale, optimizer",
    "layers.0",
    "layers.1",
    "layers.2",
    "loss",
  ]);
  expect(edges.length).toBeGreaterThan(boxes.length / 2);
});

test("arrow keys move to neighbours, and stay at the edges", () => {
  const box = (left: number, top: number): Box => ({ left, top, width: 10, height: 10 });
  const boxes = [box(0, 0), box(0, 20), box(50, 15), box(50, 40)];
  expect(neighbourOf(boxes, 0, "ArrowDown")).toBe(1);
  expect(neighbourOf(boxes, 1, "ArrowUp")).toBe(0);
  expect(neighbourOf(boxes, 1, "ArrowRight")).toBe(2);
  expect(neighbourOf(boxes, 3, "ArrowLeft")).toBe(1);
  expect(neighbourOf(boxes, 0, "ArrowUp")).toBe(0);
  expect(neighbourOf([], 0, "ArrowUp")).toBe(0);
});

test("stories open the launches of which they tell", () => {
  const kernels = stories.flatMap(({ label, state: { at = -1 } }) =>
    at < 0 ? [] : [[label, recorded.launches[at]?.kernel]],
  );
  expect(Object.fromEntries(kernels)).toEqual({
    "Why float32 here?": "softmaxCrossEntropy",
    "A cast costs a launch": "identity",
    "Where did it go?": "identity",
  });
});

test("launches are counted from 1, and lives that reach beyond the step say so", () => {
  expect(lifeText(0, 2, 15)).toBe("1–3");
  expect(lifeText(-1, 15, 15)).toBe("start–end");
});
