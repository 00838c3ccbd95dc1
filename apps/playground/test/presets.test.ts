import { imageSet } from "@halfstep/data";
import { cpuRuntime } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { presets, type TrainConfig } from "../src/train/config.js";
import { Lane, type StepPoint } from "../src/train/lane.js";
import { type SetupId, setupOf } from "../src/train/setups.js";
import { digitsTask } from "../src/train/tasks/digits.js";
import { moonsTask } from "../src/train/tasks/moons.js";
import type { Task, TaskParts } from "../src/train/tasks/task.js";

// Each preset fails in one lane and not in the lane that has the cure. On the CPU, in as few steps as show it.

interface Trained {
  readonly lane: Lane;
  readonly points: readonly StepPoint[];
}

/** Trains one lane of a preset. */
async function trained(
  preset: string,
  setup: SetupId,
  steps: number,
  makeTask: (parts: TaskParts) => Task = moonsTask,
): Promise<Trained> {
  const { config } = presets.find(({ id }) => id === preset) as (typeof presets)[number];
  const whole: TrainConfig = { ...config, seed: 0, compute: "cpu" };
  expect(config.setups).toContain(setup);
  const lane = new Lane(cpuRuntime({ provenance: "afterSkip" }), setupOf(setup), whole, makeTask);
  const points: StepPoint[] = [];
  for (let step = 0; step < steps; step++) {
    await lane.step();
    points.push(...(await lane.points()));
  }
  return { lane, points };
}

const fallOf = ({ points }: Trained): number =>
  (points[0]?.loss as number) - (points.at(-1)?.loss as number);

test("a loss of 2⁻¹⁸ vanishes in float16, unless it is scaled", async () => {
  const unscaled = await trained("underflow", "float16-unscaled", 8);
  const { layers } = await unscaled.lane.statistics();
  expect(layers.every(({ histogram }) => histogram.zeros === histogram.count)).toBe(true);
  expect(fallOf(unscaled)).toBe(0);
  expect(fallOf(await trained("underflow", "float16", 8))).toBeGreaterThan(0.1);
});

test("a fixed scale of 2³² skips every step, a dynamic one comes down", async () => {
  const { points } = await trained("overflow", "float16-fixed", 3);
  expect(points.map(({ isSkipped, scale }) => [isSkipped, scale])).toEqual(
    Array.from({ length: 3 }, () => [true, 2 ** 32]),
  );
  const dynamic = await trained("overflow", "float16", 18);
  expect(dynamic.points[0]?.isSkipped).toBe(true);
  expect(dynamic.points.at(-1)?.isSkipped).toBe(false);
  expect(fallOf(dynamic)).toBeGreaterThan(0.03);
});

test("the first result that was not finite is named", async () => {
  const { lane, points } = await trained("origin", "float16", 2);
  expect(points.map(({ isSkipped }) => isSkipped)).toEqual([true, true]);
  expect(lane.origin).toBe("infinity in the forward pass, first in cast of layers.0, element 0");
  expect((await trained("origin", "bfloat16", 1)).points[0]?.isSkipped).toBe(false);
});

test("bfloat16 weights without masters lose small updates", async () => {
  const random = (count: number, end: number) =>
    Uint8Array.from({ length: count }, (_, i) => ((i * 2654435761) >>> 16) % end);
  const some = imageSet(
    { name: "images", idx: { dtype: "uint8", shape: [64, 28, 28], data: random(64 * 784, 256) } },
    { name: "labels", idx: { dtype: "uint8", shape: [64], data: random(64, 10) } },
    10,
  );
  const makeTask = (parts: TaskParts) => digitsTask(parts, { train: some, test: some });
  const plain = await trained("masters", "bfloat16-plain", 4, makeTask);
  const masters = await trained("masters", "bfloat16", 4, makeTask);
  expect((await plain.lane.statistics()).lostUpdates).toBeGreaterThan(0.7);
  expect(fallOf(masters)).toBeGreaterThan(2 * Math.abs(fallOf(plain)));
});
