import { CheckpointArchive, type CheckpointArchiveOptions } from "./checkpoint-archive.js";

/** Checkpoints in the memory of this program, for tests, and for runs that may lose their device but not their program. */
export function memoryCheckpoints(options?: CheckpointArchiveOptions): CheckpointArchive {
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  return new CheckpointArchive(
    "memory",
    {
      list: async () => [...files.keys()],
      // A copy: arrays of a checkpoint are views of it.
      read: async (name) => (files.get(name) as Uint8Array<ArrayBuffer>).slice(),
      write: async (name, bytes) => {
        files.set(name, bytes);
      },
      remove: async (name) => {
        files.delete(name);
      },
    },
    options,
  );
}
