import { cpuRuntime } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { presets, type TrainConfig } from "../src/train/config.js";
import { Lane } from "../src/train/lane.js";
import { setups } from "../src/train/setups.js";
import { moonsTask } from "../src/train/tasks/moons.js";

const config: TrainConfig = {
  ...(presets.find(({ id }) => id === "overflow") as (typeof presets)[number]).config,
  ...{ seed: 0, compute: "cpu" },
};

test.each(setups)(
  "a lane of $id goes on from its saved state with the same bits",
  async (setup) => {
    const newLane = (): Lane => new Lane(cpuRuntime(), setup, config, moonsTask);
    const train = async (lane: Lane, steps: number): Promise<void> => {
      for (let i = 0; i < steps; i++) await lane.step();
      await lane.points();
    };
    const whole = newLane();
    await train(whole, 4);
    const first = newLane();
    await train(first, 2);
    const saved = structuredClone(await first.state());
    const second = newLane();
    second.restore(saved);
    expect(second.steps).toBe(2);
    await train(second, 2);
    expect(await second.hash()).toBe(await whole.hash());
    expect((await second.state()).points).toEqual((await whole.state()).points);
  },
);
