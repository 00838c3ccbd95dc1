import type { Counters } from "./counters.js";
import { BufferUsage, mapModeRead } from "./flags.js";
import type { Health } from "./health.js";
import { paced } from "./paced.js";
import type { SubmissionQueue } from "./submission-queue.js";

/** Memory that a GPU copies to and the host reads, for copies that are a part of the caller's own submits. */
export interface Staging {
  /** Encodes a copy of a range to byte `at`. Offsets and sizes are multiples of 4. */
  copy(
    commands: GPUCommandEncoder,
    source: { readonly buffer: GPUBuffer; readonly offset: number; readonly bytes: number },
    at: number,
  ): void;
  /**
   * Calls `use` with the memory once the copies of the last submit have arrived. The memory is valid during the call, and must not be copied
   * to before the result resolves.
   */
  arrived(use: (memory: Uint8Array) => void): Promise<void>;
  /** Frees the memory, in order with submits. */
  destroy(): void;
}

interface StagingParts {
  readonly gpu: GPUDevice;
  readonly counters: Counters;
  readonly health: Health;
  readonly queue: SubmissionQueue;
}

export function makeStaging(
  { gpu, counters, health, queue }: StagingParts,
  bytes: number,
): Staging {
  const memory = createStaging(gpu, counters, bytes);
  return {
    copy(commands, { buffer, offset, bytes: size }, at) {
      commands.copyBufferToBuffer(buffer, offset, memory, at, size);
    },
    async arrived(use) {
      await mapped(memory, bytes, health);
      use(new Uint8Array(memory.getMappedRange(0, Math.ceil(bytes / 4) * 4)));
      memory.unmap();
    },
    destroy: () => queue.add(() => memory.destroy()),
  };
}

/** A buffer for copies that the host maps. */
export function createStaging(gpu: GPUDevice, counters: Counters, bytes: number): GPUBuffer {
  counters.buffersCreated++;
  return gpu.createBuffer({
    label: "staging",
    size: Math.max(8, Math.ceil(bytes / 8) * 8),
    usage: BufferUsage.mapRead | BufferUsage.copyTarget,
  });
}

/** Resolves when the first bytes of a buffer are mapped; rejects with the failure of its device. */
export async function mapped(buffer: GPUBuffer, bytes: number, health: Health): Promise<void> {
  try {
    await paced(buffer.mapAsync(mapModeRead, 0, Math.ceil(bytes / 4) * 4));
  } catch (reason) {
    await health.explain(reason);
  }
}
