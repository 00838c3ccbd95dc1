import { cpuRuntime } from "@halfstep/tensor";
import { afterEach, expect, test, vi } from "vitest";
import { readState, writeState } from "../site/url-state.js";
import { configFields, trainFields } from "./config.js";
import { cellsOf } from "./histograms.js";
import { Lane, originText } from "./lane.js";
import { type SetupId, setupOf } from "./setups.js";
import { moonsTask } from "./tasks/moons.js";

afterEach(() => vi.unstubAllGlobals());

const initial = readState(configFields, "");

/** Weights and biases of the layers 2 → 32 → 32 → 2. */
const weights = 3 * 32 + 33 * 32 + 33 * 2;

async function keptBytesOf(id: SetupId): Promise<number> {
  const lane = new Lane(cpuRuntime(), setupOf(id), initial, moonsTask);
  try {
    await lane.step();
    return (await lane.statistics()).keptBytes;
  } finally {
    lane.dispose();
  }
}

test("what is kept of a weight is its bytes, its copy, its gradient and two moments", async () => {
  expect(await keptBytesOf("float32")).toBe(16 * weights);
  expect(await keptBytesOf("float16")).toBe(18 * weights);
  expect(await keptBytesOf("bfloat16-plain")).toBeLessThan(16 * weights);
});

test("the origin of an infinity is a sentence, in both passes", () => {
  const origin = { kind: "infinity", element: 7 } as const;
  expect(originText("forward", { ...origin, op: "cast", module: "layers.0" } as never)).toBe(
    "infinity in the forward pass, first in cast of layers.0, element 7",
  );
  expect(originText("backward", { ...origin, op: "cast in the backward of mul" } as never)).toBe(
    "infinity in the backward pass, first in cast, for the gradient of mul, element 7",
  );
});

test("gradients beyond the axis are drawn at its ends", () => {
  const counts = new Array(100).fill(0);
  counts[0] = 16;
  counts[99] = 1;
  expect(cellsOf({ firstExponent: -60, counts })).toEqual([
    { exponent: -48, weight: 1 },
    { exponent: 23, weight: 0.25 },
  ]);
});

test("the address holds the lane of which something is taken along", () => {
  const state = { ...readState(trainFields, ""), lane: "bfloat16" } as const;
  expect(writeState(trainFields, state)).toBe("?lane=bfloat16");
  expect(readState(trainFields, "?lane=bfloat16")).toEqual(state);
});

test("a page without https trains without hashes", async () => {
  const lane = new Lane(cpuRuntime(), setupOf("float32"), initial, moonsTask);
  await lane.step();
  expect(await lane.hash()).toMatch(/^[0-9a-f]{32}$/);
  vi.stubGlobal("crypto", {});
  expect(await lane.hash()).toBeUndefined();
  lane.dispose();
});
