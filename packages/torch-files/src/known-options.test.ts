import { expect, test } from "vitest";
import { convertToSafetensors } from "./convert.js";
import { openTorch, readTorch } from "./open.js";
import { openWeights } from "./open-weights.js";

test("unknown options are refused", async () => {
  const wrong = { keys: "model" } as never;
  const calls = [
    () => openWeights("never", wrong),
    () => convertToSafetensors("never", "never", wrong),
    () => openTorch(import.meta.filename, wrong),
    () => readTorch(new Uint8Array(8), wrong),
  ];
  for (const call of calls)
    await expect(call()).rejects.toThrow("there is no option keys; pass any of");
});
