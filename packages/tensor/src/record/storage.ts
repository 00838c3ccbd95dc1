import type { Binding, DType } from "@halfstep/device";
import { RecordingError } from "../errors.js";
import type { HalfCopies } from "./half-copies.js";

/** Memory of a runner, opaque to everything else. */
export type Memory = object;

/** Numbers of the host, which are encoded as the tensor's dtype when they are written: bytes of images, too. */
export type HostData =
  | Float32Array
  | Float64Array
  | Int32Array
  | Uint32Array
  | Int16Array
  | Uint16Array
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | readonly number[];

/** The dtype of host data where none is asked for: float32, and int32 or uint32 for an array of these. */
export function dtypeOf(data: HostData): DType {
  if (data instanceof Uint32Array) return "uint32";
  return data instanceof Int32Array ? "int32" : "float32";
}

/** The mask of numbers, or of booleans: 1 where one is not 0, else 0. */
export const maskOf = (data: HostData | readonly boolean[]): Uint32Array =>
  Uint32Array.from(data as ArrayLike<number | boolean>, (value) => (Number(value) === 0 ? 0 : 1));

/**
 * Copies host data. A step reads its inputs at its end, and callers may fill one array with batch after batch within a step.
 * @throws TypeError
 */
export function copyOf(data: HostData): HostData {
  requireNumbers(data);
  return data.slice();
}

/** @throws TypeError for data that would be stored as NaN: lists of lists, and arrays of halves that only `get()` decodes; for 64-bit integers */
export function requireNumbers(data: HostData): void {
  if (data instanceof BigInt64Array || data instanceof BigUint64Array)
    throw new TypeError(
      "tensor: its data has integers of 64 bits, which no dtype holds: pass Int32Array.from(data, Number)",
    );
  if (ArrayBuffer.isView(data)) return;
  if (!Array.isArray(data))
    throw new TypeError(
      "tensor: its data is neither a typed array nor a list of numbers: pass what toFloat32Array() of a Float16Array or BFloat16Array gives",
    );
  const wrong = data.findIndex((value) => typeof value !== "number");
  if (wrong >= 0)
    throw new TypeError(
      `tensor: element ${wrong} of its data is ${String(data[wrong])}, not a number: pass one flat list, and the shape`,
    );
}

/** A write to a resident storage, kept for later readers of an older version. */
export interface WriteEvent {
  readonly from: number;
  readonly to: number;
  /** The runtime's clock after the write. */
  readonly clock: number;
  /** The recording that wrote. */
  readonly recording: object;
  /** Position of the writing launch in that recording. */
  index: number;
}

let nextId = 0;
let nextVersion = 1;

/** Shared empty list: most storages are never written twice. */
const noWrites: readonly WriteEvent[] = [];

/**
 * The memory that tensors view. It is *transient* while the recording that makes it is open: it has no memory yet, and the planner
 * may assign none. It is *resident* once it has memory of its own: variables, data made outside a step, and tensors that a recording
 * keeps.
 */
export class Storage {
  readonly id: number = nextId++;
  /** The same for all storages of one runtime. */
  readonly owner: object;
  readonly byteLength: number;
  /** The open recording of a transient. */
  recording: object | undefined;
  memory: Memory | undefined;
  /** True for memory that belongs to the caller (`fromBuffer`): it is never pooled. */
  isForeign = false;
  /** True for memory of the caller's that has no room for the last quad, as kernels read it. */
  get endsInsideQuad(): boolean {
    return this.byteLength % 16 !== 0;
  }
  /** Host data of a transient input, until its recording has run. */
  hostData: HostData | undefined;
  /** The binding as which the host's data is stored. */
  inputBinding: Omit<Binding<never>, "buffer"> | undefined;
  /** Number of tensors that keep the memory; at 0 it returns to the pool. Tensors that a step does not return do not count. */
  handles = 0;
  /** Rounded copies of a resident. */
  halfCopies: HalfCopies | undefined;
  /** Bytes: the parts of a resident that packs several begin at multiples of it, with zeros in between. Absent for others. */
  partStep: number | undefined;
  /** Its number in the latest structure, and the serial number of that structure. */
  structure = 0;
  number = 0;
  /** Whether a launch of its recording has written a transient. */
  isDefined = false;
  #writes: WriteEvent[] = noWrites as WriteEvent[];
  #version = 0;

  constructor(owner: object, byteLength: number) {
    this.owner = owner;
    this.byteLength = byteLength;
  }

  get isResident(): boolean {
    return this.memory !== undefined;
  }

  /** Every write of the open recording, and of earlier ones the last to each range. */
  get writes(): readonly WriteEvent[] {
    return this.#writes;
  }

  /** Changes with each write; a dropped write restores the old version. */
  get version(): number {
    return this.#version;
  }

  /** Records a write. The first one of a recording returns a function that removes all writes of that recording. */
  noteWrite(event: WriteEvent): (() => void) | undefined {
    const [writes, version] = [this.#writes, this.#version];
    const isFirst = writes.at(-1)?.recording !== event.recording;
    if (isFirst) this.#writes = lastOfEachRange(writes);
    this.#writes.push(event);
    this.#version = nextVersion++;
    if (!isFirst) return undefined;
    return () => {
      this.#writes = writes;
      this.#version = version;
    };
  }

  /** The clock of the last write to the bytes from `from` to `to`; 0 where there was none. */
  versionOf(from: number, to: number): number {
    let clock = 0;
    for (const write of this.#writes)
      if (write.from < to && from < write.to && write.clock > clock) clock = write.clock;
    return clock;
  }

  /** The first write after `clock` that overlaps the bytes from `from` to `to`. */
  firstWriteSince(clock: number, from: number, to: number): WriteEvent | undefined {
    let first: WriteEvent | undefined;
    for (const write of this.#writes)
      if (write.clock > clock && write.from < to && from < write.to)
        if (!first || write.clock < first.clock) first = write;
    return first;
  }
}

function lastOfEachRange(writes: readonly WriteEvent[]): WriteEvent[] {
  if (writes.length <= 1) return [...writes];
  const ranges = new Map<number, WriteEvent[]>();
  const kept: WriteEvent[] = [];
  for (let i = writes.length - 1; i >= 0; i--) {
    const write = writes[i] as WriteEvent;
    const known = ranges.get(write.from);
    if (known?.some(({ to }) => to === write.to)) continue;
    if (known) known.push(write);
    else ranges.set(write.from, [write]);
    kept.push(write);
  }
  return kept.reverse();
}

/** The memory of a resident. Throws where it was freed. */
export function memoryOf(storage: Storage): Memory {
  if (!storage.memory)
    throw new RecordingError(
      "this memory belongs to a step that has closed: allocate it outside steps to use it later",
    );
  return storage.memory;
}

/** The place of a tensor's elements. */
export interface Placement {
  readonly storage: Storage;
  /** Bytes from the start of the storage. */
  readonly offset: number;
}
