import type { Binding, HalfDType, Launch } from "@halfstep/device";
import { elementwise, identity } from "@halfstep/kernels";
import { copyValues } from "@halfstep/kernels/planner";
import type { Placement, Storage } from "./storage.js";

interface HalfCopy {
  readonly binding: Binding<Storage> & { readonly dtype: HalfDType };
  /** The version of the values when the copy was made. The copy is valid while the values have this version. */
  of: number | undefined;
  /** The number of the last recording that reads the copy. */
  lastRead: number;
}

/** The part of a recording that reads and makes copies. */
interface CopyingRecording {
  readonly number: number;
  append(launch: Launch<Storage>): void;
  /** The recording that runs before this one. */
  takePrelude(): CopyingRecording;
  /** Registers how to restore host state if the recording is dropped. */
  onDrop(undo: () => void): void;
}

/** Allocates and frees the memory of copies. */
export interface CopyMemory {
  allocate(bytes: number): Storage;
  release(copy: Storage): void;
}

/** The number of recordings for which an unread copy is kept up to date. */
const keptUnread = 8;

/**
 * Copies of float32 numbers that stay in memory, rounded to 16-bit formats: ops under autocast read them instead of rounding
 * each number in every load. An optimizer's update launch also stores the copies of its flat parameters that steps read. After
 * any other write, the next step that reads a copy renews all of them, in one launch before the step. Other numbers are copied
 * when a second recording reads the same version; casts of numbers that change in every step are folded into loads instead.
 */
export class HalfCopies {
  readonly #values: Binding<Storage>;
  readonly #isFlat: boolean;
  readonly #copies = new Map<HalfDType, HalfCopy>();
  #isLent = false;
  /** The recording that requested a copy first, and the version of the values then. */
  #asked: { readonly by: number; readonly of: number } | undefined;

  /**
   * @param values Whole, float32.
   * @param isFlat Whether the values are the flat parameters of an optimizer.
   */
  constructor(values: Binding<Storage>, isFlat: boolean) {
    this.#values = values;
    this.#isFlat = isFlat;
  }

  /**
   * The place at which `recording` finds the copy of the values from byte `offset` on; undefined where there is no copy, or
   * its offset cannot be bound. A dropped recording takes its request back.
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
    // The copy is freed with the values, not with the tensors that view it.
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

  /** Copies that an update of the values also has to store: those that are valid and were read lately. */
  followed(recording: CopyingRecording): readonly HalfCopy[] {
    return [...this.#copies.values()].filter(
      (copy) => this.#isCurrent(copy) && recording.number - copy.lastRead <= keptUnread,
    );
  }

  /** The formats in which a recording has read copies so far. */
  readIn({ number }: CopyingRecording): readonly HalfDType[] {
    return [...this.#copies].flatMap(([dtype, { lastRead }]) =>
      lastRead === number ? [dtype] : [],
    );
  }

  /** Records that the last recorded update also stores this copy. */
  follow(copy: HalfCopy, recording: CopyingRecording): void {
    recording.append(copyValues({ values: this.#values, copy: copy.binding }));
    this.#setCurrent(copy, recording);
  }

  /** Records that a copy is made anew from the present values. */
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

  /** Called after the host has written the values, before `recording` reads them. */
  valuesWritten(recording: CopyingRecording): void {
    this.#asked = undefined;
    for (const copy of this.#copies.values())
      if (copy.lastRead === recording.number && this.#isCurrent(copy))
        this.#renew(copy, recording.takePrelude());
      else copy.of = undefined;
  }

  /** Called when the caller gets the memory of the values, and may write it unnoticed. */
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

/** The copies of a resident float32 storage that belongs to the runtime; undefined for others. */
export function halfCopiesOf(storage: Storage): HalfCopies | undefined {
  if (!storage.isResident || storage.isForeign) return undefined;
  storage.halfCopies ??= new HalfCopies(
    { buffer: storage, offset: 0, length: storage.byteLength / 4, dtype: "float32" },
    false,
  );
  return storage.halfCopies;
}

/**
 * Called before a launch that may update parameters. Returns a function to call after it, which keeps their copies up to date.
 */
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
