import { readFileSync } from "node:fs";
import type { SavedTensor } from "@halfstep/nn";
import { readSafetensors } from "@halfstep/safetensors";
import type { Runtime, Tensor } from "@halfstep/tensor";

export interface Checkpoint {
  /** As torch saved it. */
  readonly state: Readonly<Record<string, SavedTensor>>;
  /** Inputs, and what the network made of them. */
  readonly golden: Readonly<Record<string, SavedTensor>>;
}

const dtypes = { F32: "float32", U32: "uint32", I64: "float32" } as const;

/** A checkpoint that golden/checkpoints.py made. */
export function readCheckpoint(name: string): Checkpoint {
  const file = new URL(`./golden/${name}.safetensors`, import.meta.url);
  const { tensors } = readSafetensors(readFileSync(file));
  const state: Record<string, SavedTensor> = {};
  const golden: Record<string, SavedTensor> = {};
  for (const [path, { dtype, shape, data }] of Object.entries(tensors)) {
    if (!(dtype in dtypes)) throw new TypeError(`${path} is ${dtype}`);
    const saved = {
      shape,
      dtype: dtypes[dtype as keyof typeof dtypes],
      data: dtype === "U32" ? (data as Uint32Array) : Float32Array.from(data as never, Number),
    } as SavedTensor;
    if (path.startsWith("golden.")) golden[path.slice("golden.".length)] = saved;
    else state[path] = saved;
  }
  return { state, golden };
}

export const tensorOf = (runtime: Runtime, { data, shape }: SavedTensor): Tensor =>
  runtime.tensor(data, shape);

/** Images [batch, channels, height, width] as [batch, height, width, channels]. */
export const channelsLast = (x: Tensor): Tensor => x.permute([0, 2, 3, 1]);

/** Images the other way; anything else as it is. */
export const channelsFirst = (x: Tensor): Tensor => (x.rank === 4 ? x.permute([0, 3, 1, 2]) : x);

/** The largest difference between a tensor and what it should be. */
export async function distance(actual: Tensor, expected: SavedTensor | undefined): Promise<number> {
  if (actual.shape.join() !== expected?.shape.join())
    throw new RangeError(`[${actual.shape}] is not [${expected?.shape}]`);
  let worst = 0;
  for (const [i, value] of (await actual.toArray()).entries())
    worst = Math.max(worst, Math.abs(value - (expected.data[i] as number)));
  return worst;
}
