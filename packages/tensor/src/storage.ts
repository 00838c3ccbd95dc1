import type { Binding } from "@halfstep/device";
import type { CpuBuffer } from "@halfstep/kernels";
import type { Recording } from "./recording.js";

/** Memory of a runner. */
export type Memory = GPUBuffer | CpuBuffer;

/** Numbers of JavaScript, which are encoded as the tensor's dtype when they are written. */
export type HostData = Float32Array | Float64Array | Int32Array | Uint32Array | readonly number[];

/** A write to a resident storage, which later readers of an older version must know. */
export interface WriteEvent {
  readonly from: number;
  readonly to: number;
  /** The runtime's clock after the write. */
  clock: number;
  readonly recording: Recording | undefined;
  /** Position of the writing launch in that recording. */
  index: number;
}

let nextId = 0;

/**
 * The memory that tensors view. It is *transient* while the recording that makes it is open: then it has no memory yet, and
 * the planner may give it none. It is *resident* once it has memory of its own: variables, data made outside a step, and
 * whatever a recording keeps.
 */
export class Storage {
  readonly id: number = nextId++;
  readonly byteLength: number;
  /** The open recording of a transient. */
  recording: Recording | undefined;
  memory: Memory | undefined;
  /** True for memory that belongs to the caller (`fromBuffer`): it is never pooled. */
  isForeign = false;
  /** What the host supplies for a transient input. */
  hostData: HostData | undefined;
  /** How the host's data is stored. */
  inputBinding: Omit<Binding<never>, "buffer"> | undefined;
  /** Tensors that keep the memory; at none it goes back to the pool. Tensors of a step that it does not return keep nothing. */
  handles = 0;
  /** The last write to each range that was ever written separately. */
  readonly writes: WriteEvent[] = [];

  constructor(byteLength: number) {
    this.byteLength = byteLength;
  }

  get isResident(): boolean {
    return this.memory !== undefined;
  }

  noteWrite(event: WriteEvent): WriteEvent | undefined {
    const known = this.writes.findIndex(({ from, to }) => from === event.from && to === event.to);
    const previous = this.writes[known];
    if (known >= 0) this.writes[known] = event;
    else this.writes.push(event);
    return previous;
  }

  /** The first write after `clock` that overlaps the bytes from `from` to `to`. */
  firstWriteSince(clock: number, from: number, to: number): WriteEvent | undefined {
    let first: WriteEvent | undefined;
    for (const write of this.writes)
      if (write.clock > clock && write.from < to && from < write.to)
        if (!first || write.clock < first.clock) first = write;
    return first;
  }
}
