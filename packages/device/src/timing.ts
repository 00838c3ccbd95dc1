import { BufferUsage, mapModeRead } from "./flags.js";
import { paced } from "./paced.js";
import type { SubmissionQueue } from "./submission-queue.js";

/** The result of a function, and the GPU time of its submits. */
export interface Timed<T> {
  readonly value: T;
  /** Milliseconds on the GPU's own clock; undefined where the device has no timestamps. */
  readonly milliseconds: number | undefined;
}

/** The parts of a device that timing needs. */
interface TimedDevice {
  readonly gpu: GPUDevice;
  readonly hasTimestamps: boolean;
  readonly queue: SubmissionQueue;
  submit(commands: readonly GPUCommandBuffer[]): void;
}

/** Brackets the submits of `fn` between two timestamps, which empty passes write. */
export async function measure<T>(
  { gpu, hasTimestamps, queue, submit }: TimedDevice,
  fn: () => T,
): Promise<Timed<T>> {
  if (!hasTimestamps) return { value: fn(), milliseconds: undefined };
  const querySet = gpu.createQuerySet({ type: "timestamp", count: 2 });
  const resolved = gpu.createBuffer({
    size: 16,
    usage: BufferUsage.queryResolve | BufferUsage.copySource,
  });
  const staging = gpu.createBuffer({
    size: 16,
    usage: BufferUsage.mapRead | BufferUsage.copyTarget,
  });
  try {
    const before = gpu.createCommandEncoder();
    before.beginComputePass({ timestampWrites: { querySet, endOfPassWriteIndex: 0 } }).end();
    submit([before.finish()]);
    const value = fn();
    const after = gpu.createCommandEncoder();
    after.beginComputePass({ timestampWrites: { querySet, beginningOfPassWriteIndex: 1 } }).end();
    after.resolveQuerySet(querySet, 0, 2, resolved, 0);
    after.copyBufferToBuffer(resolved, 0, staging, 0, 16);
    submit([after.finish()]);
    await queue.called();
    await paced(staging.mapAsync(mapModeRead));
    const [begin = 0n, end = 0n] = new BigUint64Array(staging.getMappedRange().slice(0));
    return { value, milliseconds: Number(end - begin) / 1e6 };
  } finally {
    queue.add(() => {
      querySet.destroy();
      resolved.destroy();
      staging.destroy();
    });
  }
}
