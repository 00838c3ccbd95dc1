import type { Binding, HalfDType, Launch } from "@halfstep/device";
import { elementwise, identity } from "@halfstep/kernels";
import { copyValues } from "@halfstep/kernels/planner";
import type { Placement, Storage } from "./storage.js";

interface HalfCopy {
  readonly binding: Binding<Storage> & { readonly dtype: HalfDType };
  /** The version of the values when the copy was made: it holds the same numbers for as long as that is theirs. */
  of: number | undefined;
  /** The number of the last recording that reads the copy. */
  lastRead: number;
}

/** The recording that reads copies and makes them. */
interface CopyingRecording {
  readonly number: number;
  append(launch: Launch<Storage>): void;
  /** The recording that runs before this one. */
  takePrelude(): CopyingRecording;
  /** Registers how to restore host state if the recording is dropped. */
  onDrop(undo: () => void): void;
}

/** Where copies get their memory, and give it back. */
export interface CopyMemory {
  allocate(bytes: number): Storage;
  release(copy: Storage): void;
}

/** For how many recordings a copy is kept up to date that none of them reads. */
const keptUnread = 8;

/**
 * Copies of float32 numbers that stay in memory, rounded to 16-bit formats: what autocast's ops read instead of rounding each
 * number in every load. Where an optimizer's update is the last to change its flat parameters, its launch keeps the copies that
 * steps read up to date; after any other write the next step that reads a copy rounds all of them anew, in one launch before it.
 * Other numbers are copied when a second recording reads them as they were for the first: what changes from step to step has its
 * casts folded into loads.
 */
export class HalfCopies {
  readonly #values: Binding<Storage>;
  readonly #isFlat: boolean;
  readonly #copies = new Map<HalfDType, HalfCopy>();
  #isLent = false;
  /** The recording that asked for a copy first, and the version that it would have been of. */
  #asked: { readonly by: number; readonly of: number } | undefined;

  /**
   * @param values Whole, float32.
   * @param isFlat Whether they are the parameters of an optimizer.
   */
  constructor(values: Binding<Storage>, isFlat: boolean) {
    this.#values = values;
    this.#isFlat = isFlat;
  }

  /**
   * Where the copy of what lies `offset` bytes from the start of the values will be once `recording` runs; undefined where
   * there is none, or none that can be bound. If the recording is dropped, nobody has asked.
   */
  placeOf(
    offset: number,
    dtype: HalfDType,
    recording: CopyingRecording,
    memory: CopyMemory,
  ): Placement | undefined {
    if (this.#isLent || offset % 512 !== 0) return undefined;
    if (!this.#isFlat && !this.#isAskedAgain(recording)) return undefined;
    const copy = this.#copies.get(dtype) ?? this.#newCopy(dtype, recording, memory);
    const { buffer } = this.#values;
    if (!this.#isCurrent(copy)) {
      const isChanged = buffer.writes.some((write) => write.recording === recording);
      this.#renew(copy, isChanged ? recording : recording.takePrelude());
    }
    const { lastRead } = copy;
    if (lastRead !== recording.number) {
      copy.lastRead = recording.number;
      recording.onDrop(() => {
        copy.lastRead = lastRead;
      });
    }
    return { storage: copy.binding.buffer, offset: offset / 2 };
  }

  #newCopy(
    dtype: HalfDType,
    recording: CopyingRecording,
    { allocate, release }: CopyMemory,
  ): HalfCopy {
    const { length } = this.#values;
    const buffer = allocate(length * 2);
    // Freed with the values, whatever tensors view it.
    buffer.handles++;
    const copy: HalfCopy = {
      binding: { buffer, offset: 0, length, dtype },
      of: undefined,
      lastRead: 0,
    };
    this.#copies.set(dtype, copy);
    recording.onDrop(() => {
      this.#copies.delete(dtype);
      release(buffer);
    });
    return copy;
  }

  /** Copies that an update of the values has to take along: up to date so far, and read lately. */
  followed(recording: CopyingRecording): readonly HalfCopy[] {
    return [...this.#copies.values()].filter(
      (copy) => this.#isCurrent(copy) && recording.number - copy.lastRead <= keptUnread,
    );
  }

  /** Records that a copy follows the update that was recorded last. */
  follow(copy: HalfCopy, recording: CopyingRecording): void {
    recording.append(copyValues({ values: this.#values, copy: copy.binding }));
    this.#setCurrent(copy, recording);
  }

  /** Records that a copy is made of what the values are now, whatever it held before. */
  #renew(copy: HalfCopy, recording: CopyingRecording): void {
    const shape = [this.#values.length];
    const values = { ...this.#values, shape };
    recording.append(elementwise(identity, [values], { ...copy.binding, shape }));
    this.#setCurrent(copy, recording);
  }

  #setCurrent(copy: HalfCopy, recording: CopyingRecording): void {
    const before = copy.of;
    copy.of = this.#values.buffer.version;
    recording.onDrop(() => {
      copy.of = before;
    });
  }

  /** Whether an earlier recording than this one has read the values as they are. */
  #isAskedAgain(recording: CopyingRecording): boolean {
    const { version } = this.#values.buffer;
    const before = this.#asked;
    if (before?.of === version) return before.by !== recording.number;
    this.#asked = { by: recording.number, of: version };
    recording.onDrop(() => {
      this.#asked = before;
    });
    return false;
  }

  /** The host has written values, which `recording` will find in place of the old. */
  valuesWritten(recording: CopyingRecording): void {
    this.#asked = undefined;
    for (const copy of this.#copies.values())
      if (copy.lastRead === recording.number && this.#isCurrent(copy))
        this.#renew(copy, recording.takePrelude());
      else copy.of = undefined;
  }

  /** Somebody has got hold of the memory of the values, and may write it unseen. */
  valuesLent(): void {
    this.#isLent = true;
    for (const copy of this.#copies.values()) copy.of = undefined;
  }

  /** The memory of all copies. */
  *storages(): Generator<Storage> {
    for (const { binding } of this.#copies.values()) yield binding.buffer;
  }

  #isCurrent({ of }: HalfCopy): boolean {
    return of === this.#values.buffer.version;
  }
}

/** The copies of a storage that is resident and nobody else's, of float32 numbers. */
export function halfCopiesOf(storage: Storage): HalfCopies | undefined {
  if (!storage.isResident || storage.isForeign) return undefined;
  storage.halfCopies ??= new HalfCopies(
    { buffer: storage, offset: 0, length: storage.byteLength / 4, dtype: "float32" },
    false,
  );
  return storage.halfCopies;
}

/** Before a launch that may update parameters: what to do after it, so that their copies stay up to date. */
export function copiesAfter(
  { kernel, bindings }: Launch<Storage>,
  { halfCopies }: Storage,
  recording: CopyingRecording,
): (() => void) | undefined {
  const isUpdate = bindings.some(
    ({ buffer }, b) => buffer.halfCopies === halfCopies && kernel.bindings[b]?.access !== "read",
  );
  if (!halfCopies || !isUpdate) return undefined;
  const followed = halfCopies.followed(recording);
  return () => {
    for (const copy of followed) halfCopies.follow(copy, recording);
  };
}
