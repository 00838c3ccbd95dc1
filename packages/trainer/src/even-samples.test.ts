import { expect, test } from "vitest";
import { EvenSamples } from "./even-samples.js";

test("few samples are all kept", () => {
  const samples = new EvenSamples<number>();
  for (let i = 0; i < 1000; i++) samples.add(i);
  expect(samples.kept).toEqual(Array.from({ length: 1000 }, (_, i) => i));
});

test("many are kept evenly, in bounded memory", () => {
  const samples = new EvenSamples<number>();
  for (let i = 0; i < 100_000; i++) samples.add(i);
  const { kept } = samples;
  expect(kept.length).toBeLessThan(4096);
  expect(kept.length).toBeGreaterThan(2048);
  const steps = new Set(kept.slice(1).map((sample, i) => sample - (kept[i] as number)));
  expect([...steps]).toEqual([32]);
  expect(kept[0]).toBe(0);
});
