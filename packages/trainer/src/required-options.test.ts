import { cpuRuntime } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { evaluate } from "./evaluate.js";
import { Predictor } from "./predictor.js";
import { train } from "./train.js";

const calls: Readonly<Record<string, (options: never) => unknown>> = {
  train: (options) => train(options),
  evaluate: (options) => evaluate(options),
  Predictor: async (options) => new Predictor(options),
};

test.each(Object.entries(calls))("%s names the options that are missing", async (name, call) => {
  for (const options of [undefined, null, 5, {}, { runtime: cpuRuntime() }])
    await expect(call(options as never)).rejects.toThrow(
      new RegExp(`^${name} takes an object with options: pass .*\\(a function that .*\\)`),
    );
  await expect(call({ runtime: cpuRuntime() } as never)).rejects.toThrow(TypeError);
});

test("what is no function is missing, too", async () => {
  const options = {
    runtime: {},
    precision: "float32",
    loss: 5,
    optimizer: {},
    scaler: {},
    epochs: 1,
  };
  await expect(calls.train?.({ ...options, batches: [] } as never)).rejects.toThrow(
    "train takes an object with options: pass loss (a function that records the loss of a batch), batches (a function that gives the batches of an epoch)",
  );
});
