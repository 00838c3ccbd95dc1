import { type Device, paced } from "@halfstep/device";
import { EvenSamples } from "./even-samples.js";

/** Flags of `GPUBufferUsage` and `GPUMapMode`, which are globals in browsers only. */
const usage = { mapRead: 0x1, copySource: 0x4, copyTarget: 0x8, queryResolve: 0x200 } as const;
const mapModeRead = 0x1;

/** Times submitted work on the GPU's own clock, without waiting for it. */
export class DeviceClock {
  readonly #device: Device;
  readonly #samples = new EvenSamples<number>();
  readonly #pending: Set<Promise<void>> = new Set();

  /** Undefined where the device has no timestamps. */
  static on(device: Device | undefined): DeviceClock | undefined {
    return device?.capabilities.hasTimestamps ? new DeviceClock(device) : undefined;
  }

  private constructor(device: Device) {
    this.#device = device;
  }

  /** Begins a sample; the returned function ends it. */
  begin(): () => void {
    const { gpu } = this.#device;
    const querySet = gpu.createQuerySet({ type: "timestamp", count: 2 });
    const before = gpu.createCommandEncoder();
    before.beginComputePass({ timestampWrites: { querySet, endOfPassWriteIndex: 0 } }).end();
    this.#device.submit([before.finish()]);
    return () => {
      const reading = this.#end(querySet).catch(() => {
        // The failing step reports a lost device.
      });
      this.#pending.add(reading);
      void reading.then(() => this.#pending.delete(reading));
    };
  }

  /** The median of the samples, in milliseconds; undefined where there is none. Call it when the device has finished. */
  async median(): Promise<number | undefined> {
    await Promise.all(this.#pending);
    const sorted = [...this.#samples.kept].sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)];
  }

  async #end(querySet: GPUQuerySet): Promise<void> {
    const { gpu } = this.#device;
    const resolved = gpu.createBuffer({ size: 16, usage: usage.queryResolve | usage.copySource });
    const staging = gpu.createBuffer({ size: 16, usage: usage.mapRead | usage.copyTarget });
    try {
      const after = gpu.createCommandEncoder();
      after.beginComputePass({ timestampWrites: { querySet, beginningOfPassWriteIndex: 1 } }).end();
      after.resolveQuerySet(querySet, 0, 2, resolved, 0);
      after.copyBufferToBuffer(resolved, 0, staging, 0, 16);
      this.#device.submit([after.finish()]);
      await this.#device.submitted();
      await paced(staging.mapAsync(mapModeRead));
      const [begin = 0n, end = 0n] = new BigUint64Array(staging.getMappedRange().slice(0));
      this.#samples.add(Number(end - begin) / 1e6);
    } finally {
      querySet.destroy();
      resolved.destroy();
      staging.destroy();
    }
  }
}
