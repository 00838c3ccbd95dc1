import { imageSet } from "@halfstep/data";
import { cpuRuntime, type Plan } from "@halfstep/tensor";
import type { TaskName, TrainConfig } from "../train/config.js";
import { Loop } from "../train/loop.js";
import type { Setup } from "../train/setups.js";
import { digitsTask } from "../train/tasks/digits.js";
import { moonsTask } from "../train/tasks/moons.js";
import type { Task, TaskParts } from "../train/tasks/task.js";
import { textTask } from "../train/tasks/text.js";
import { passesUntil, type StageId } from "./stages.js";

const images = 64;

/** Blank images: a plan does not depend on numbers. */
const blank = imageSet(
  {
    name: "blank images",
    idx: { dtype: "uint8", shape: [images, 28, 28], data: new Uint8Array(images * 28 * 28) },
  },
  {
    name: "blank labels",
    idx: { dtype: "uint8", shape: [images], data: new Uint8Array(images) },
  },
  10,
);

const makers: Readonly<Record<TaskName, (parts: TaskParts) => Task>> = {
  moons: moonsTask,
  digits: (parts) => digitsTask(parts, { train: blank, test: blank }, { isSmall: false }),
  text: textTask,
};

/**
 * The plan of a first step of what the page of training trains, after some of the planner's passes. Nothing is computed, and plans for
 * GPUs need none.
 */
export function planStage(task: TaskName, setup: Setup, stage: StageId): Plan {
  const config: TrainConfig = {
    ...{ task, setups: [setup.id], lr: 0.01, shrink: 0, gain: 0, scale: 16, seed: 0 },
    compute: "cpu",
  };
  using runtime = cpuRuntime({ passes: passesUntil(stage) });
  const loop = new Loop(runtime, setup, config, makers[task]);
  return runtime.plan(() => loop.record(0));
}
