import { expect, test } from "vitest";
import { openSafetensorsBlob, SafetensorsError, writeSafetensors } from "./index.js";

const tensors = {
  weight: { dtype: "F32", shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) },
  bias: { dtype: "F16", shape: [3], data: Uint16Array.of(1, 2, 3) },
} as const;
const bytes = writeSafetensors(tensors, { metadata: { epoch: "3" } });

/** A blob that notes the places that are read. */
class WatchedBlob extends Blob {
  readonly reads: (readonly [start: number | undefined, end: number | undefined])[] = [];
  override slice(start?: number, end?: number): Blob {
    this.reads.push([start, end]);
    return super.slice(start, end);
  }
}

test("a blob is read tensor by tensor", async () => {
  const blob = new WatchedBlob([bytes]);
  const file = await openSafetensorsBlob(blob);
  const header = Number(new DataView(bytes.buffer).getBigUint64(0, true));
  expect(blob.reads.splice(0)).toEqual([
    [0, 8],
    [8, 8 + header],
  ]);
  expect({ ...file.metadata }).toEqual({ epoch: "3" });
  expect(Object.keys(file.tensors)).toEqual(["weight", "bias"]);
  expect(await file.read("bias")).toEqual(tensors.bias);
  expect(blob.reads).toEqual([[24 + header, 30 + header]]);
  expect({ ...(await file.readAll()) }).toEqual(tensors);
  await file.close();
  expect(await file.read("weight")).toEqual(tensors.weight);
});

test("malformed blobs are refused by name", async () => {
  const cut = openSafetensorsBlob(new Blob([bytes.subarray(0, bytes.length - 1)]), {
    source: "model.safetensors",
  });
  await expect(cut).rejects.toThrow(SafetensorsError);
  await expect(cut).rejects.toThrow('model.safetensors: tensor "bias": its data ends at');
});
