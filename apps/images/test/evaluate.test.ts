import { cpuRuntime } from "@halfstep/tensor";
import { expect, it } from "vitest";
import { scoreImages } from "../src/evaluate.js";
import { networkOf } from "../src/model.js";

it.each([
  [5, false],
  [6, true],
])("five guesses among %i classes are scored: %s", async (count, isScored) => {
  const runtime = cpuRuntime();
  const classes = Array.from({ length: count }, (_, i) => `class ${i}`);
  const network = { layers: [1, 1, 1], width: 4, stem: "cifar", channels: 1 } as const;
  const batches = (async function* () {
    const images = Float32Array.from({ length: 6 * 64 }, (_, i) => Math.sin(i));
    yield { images, labels: Uint32Array.from({ length: 6 }, (_, i) => i % count) };
  })();
  const model = networkOf(runtime, { ...network, classes: count }, 1).eval();
  const { score } = await scoreImages({ runtime, precision: "float32", model, batches, classes });
  expect(score.samples).toBe(6);
  expect("top5Accuracy" in score).toBe(isScored);
});
