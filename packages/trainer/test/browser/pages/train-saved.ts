import { type Device, type MemoryAccount, NoAdapterError, requestDevice } from "@halfstep/device";
import { GradScaler } from "@halfstep/grad-scaler";
import { Mlp } from "@halfstep/models";
import { AdamW } from "@halfstep/optim";
import { ampPrimitives, crossEntropy, flatten, gpuRuntime } from "@halfstep/tensor";
import { parameterSha256, train } from "@halfstep/trainer";
import { type StoreKind, storeOf } from "./stores.js";

/** What training in a page left, or the error that ended it. */
export interface Ended {
  readonly sha256?: string;
  readonly resumedAt?: number;
  readonly error?: string;
}

const points = Array.from({ length: 64 }, (_, batch) => {
  const at = Array.from({ length: 32 }, (_, i) => 32 * batch + i);
  const pairs = at.map(
    (i) => [2 * ((i * 0.618034) % 1) - 1, 2 * ((i * 0.754878) % 1) - 1] as const,
  );
  return {
    points: Float32Array.from(pairs.flat()),
    labels: Uint32Array.from(pairs, ([x, y]) => (x * y > 0 ? 1 : 0)),
  };
});

/** A device of a browser whose GPU process may have ended just before. */
async function nextDevice(): Promise<Device> {
  for (let attempt = 1; ; attempt++)
    try {
      return await requestDevice();
    } catch (error) {
      if (attempt === 20 || !(error instanceof NoAdapterError)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
}

/** Trains an MLP in float16 for so many steps, from the newest checkpoint of the run if there is one. After each step `onStep` is called. */
export async function trainSaved(
  kind: StoreKind,
  run: string,
  maxSteps: number,
  onStep: (step: number, memory: MemoryAccount) => Promise<void>,
): Promise<Ended> {
  const device = await nextDevice();
  const runtime = gpuRuntime(device);
  const model = new Mlp(runtime, { sizes: [2, 32, 2], seed: 1 });
  const optimizer = new AdamW(runtime.target, flatten(model.parameters()), { lr: 0.02 });
  const scaler = new GradScaler(ampPrimitives(runtime), { initScale: 2 ** 24, growthInterval: 20 });
  try {
    const { resumedAt } = await train({
      ...{ runtime, device, precision: "float16", optimizer, scaler, maxSteps },
      epochs: Number.POSITIVE_INFINITY,
      batches: () => points,
      loss: ({ points, labels }) =>
        crossEntropy(
          model.forward(runtime.tensor(points, [labels.length, 2])),
          runtime.tensor(labels),
        ),
      lr: () => 0.02,
      checkpoints: {
        ...{ store: storeOf(kind, run), parts: { model, optimizer } },
        ...{ every: { steps: 50 }, resume: "auto" },
      },
      hooks: { count: { afterStep: ({ step }) => onStep(step, device.memory) } },
    });
    return { resumedAt, sha256: await parameterSha256(model.namedParameters()) };
  } catch (error) {
    return { error: String(error) };
  } finally {
    device.destroy();
  }
}
