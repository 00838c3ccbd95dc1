import { cpuRuntime } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { Mlp } from "./index.js";

test("it applies relu between its layers and not after the last", async () => {
  const runtime = cpuRuntime();
  const model = new Mlp(runtime, { sizes: [3, 4, 2], seed: 5 });
  const state = await model.stateDict();
  expect(Object.keys(state)).toEqual([
    "layers.0.weight",
    "layers.0.bias",
    "layers.1.weight",
    "layers.1.bias",
  ]);
  const numbers = (name: string): number[] => [...(state[name]?.data ?? [])];
  const layer = (x: readonly number[], name: string): number[] =>
    numbers(`${name}.bias`).map((bias, row) =>
      x.reduce(
        (sum, value, i) => sum + value * (numbers(`${name}.weight`)[row * x.length + i] as number),
        bias,
      ),
    );
  const x = [0.5, -1, 2];
  const hidden = layer(x, "layers.0").map((value) => Math.max(0, value));
  const expected = layer(hidden, "layers.1");
  const output = await model.forward(runtime.tensor(x, [1, 3])).toArray();
  expect(output.length).toBe(2);
  for (const [i, value] of output.entries()) expect(value).toBeCloseTo(expected[i] as number, 6);
});

test("a network of one size has no layer, and is refused", () => {
  expect(() => new Mlp(cpuRuntime(), { sizes: [3] as never, seed: 1 })).toThrow(
    "Mlp: sizes is [3]: give those of the input and of each layer",
  );
});
