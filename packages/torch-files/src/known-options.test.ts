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

test("a limit that is no number is refused", async () => {
  const wrong = { maxPickleBytes: "10" as unknown as number };
  const message = "maxPickleBytes is 10: pass a number";
  await expect(readTorch(new Uint8Array(8), wrong)).rejects.toThrow(new TypeError(message));
  await expect(openTorch(import.meta.filename, wrong)).rejects.toThrow(message);
});

test.each([Float32Array.of(1, 2), new DataView(new ArrayBuffer(8)), [80, 75], 8, "model.pt", null])(
  "%j are no bytes of a checkpoint",
  async (wrong) => {
    const bytes = wrong as unknown as Uint8Array;
    await expect(readTorch(bytes)).rejects.toThrow(TypeError);
    await expect(readTorch(bytes)).rejects.toThrow("pass an ArrayBuffer or a Uint8Array");
  },
);
