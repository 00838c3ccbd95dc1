import type { Binding, Launch } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import { fill } from "@halfstep/kernels";
import { ClosedTensorError } from "../errors.js";
import { copiesAfter } from "./half-copies.js";
import type { OpNotes } from "./op-notes.js";
import { SharedCasts } from "./shared-casts.js";
import type { Storage, WriteEvent } from "./storage.js";

/** The launches of a backward pass: those behind `after` (from the first on where undefined) up to `last`. */
export interface BackwardPass {
  readonly after: Launch<Storage> | undefined;
  readonly last: Launch<Storage>;
}

/**
 * The launches that ops append, in program order. Launches are pure, except those that write resident storage (parameters,
 * optimizer and scaler state); program order decides which version a launch reads.
 */
export class Recording {
  readonly number: number;
  /** A recording that runs before this one and does not change its plan. */
  prelude: Recording | undefined;
  readonly launches: Launch<Storage>[] = [];
  /** Transients with contents from the host. */
  readonly inputs: Storage[] = [];
  /** Casts already recorded, by their source: autocast's weight cache. */
  readonly casts: SharedCasts = new SharedCasts();
  /** Transients that stay alive after the recording. */
  readonly kept: Set<Storage> = new Set();
  /** Every transient with a handle, which a recording outside a step keeps. */
  readonly transients: Storage[] = [];
  /** Residents disposed while this recording still needs them. */
  readonly released: Storage[] = [];
  /** The op of each launch, where the recording keeps notes. */
  notes: OpNotes | undefined;
  /** Copies of memory that ends inside a quad. */
  readonly wholeQuads: Map<Storage, Storage> = new Map();
  /** The launches before searches added theirs; undefined where there was no search. */
  unsearched: readonly Launch<Storage>[] | undefined;
  /** Whether the results of its ops are searched for values that are not finite. It then keeps notes. */
  isSearched = false;
  /** Whether the numbers rounded to zero in those results are counted. */
  isCounted = false;
  /** The range of launches of each backward pass. */
  readonly backwardPasses: BackwardPass[] = [];
  /** Where the observer `storedRange` stores the counts of the 16-bit stores of backward passes so far. */
  readonly backwardRanges: { readonly words: Binding<Storage>; readonly passes: number }[] = [];
  /** Functions that add launches when all others are recorded, in memory that they allocate. */
  readonly completions: Set<(recording: Recording, allocate: (bytes: number) => Storage) => void> =
    new Set();
  /** Launches from here on belong to a backward pass. */
  backwardStart: number | undefined;
  readonly #undo: (() => void)[] = [];
  readonly #writes: WriteEvent[] = [];
  readonly #tick: () => number;

  constructor(number: number, tick: () => number, noteOps = false) {
    this.number = number;
    if (noteOps) this.notes = new Map();
    this.#tick = tick;
  }

  /** @param parameters the parameters that the launch updates as a part of an optimizer's step. */
  append(launch: Launch<Storage>, parameters?: Storage): void {
    const updateCopies = parameters && copiesAfter(launch, parameters, this);
    const { kernel, bindings } = launch;
    for (let i = 0; i < bindings.length; i++) {
      const binding = bindings[i] as Binding<Storage>;
      const { buffer } = binding;
      const access = kernel.bindings[i]?.access;
      if (buffer.isResident) {
        if (access !== "read") this.#noteWrite(binding);
      } else if (buffer.recording !== this)
        throw new ClosedTensorError(
          `${kernel.name}: ${kernel.bindings[i]?.name ?? `operand ${i}`} belongs to a recording that has closed. ` +
            "Return it from the step, or mark it keep() there, to use it later.",
        );
      else if (access === "write") buffer.isDefined = true;
      else this.#define(buffer);
    }
    this.launches.push(launch);
    updateCopies?.();
  }

  /** The ranges of a resident that launches read. */
  readsOf(buffer: Storage): readonly Binding<Storage>[] {
    return this.launches.flatMap(({ kernel, bindings }) =>
      bindings.filter(
        (binding, b) => binding.buffer === buffer && kernel.bindings[b]?.access !== "write",
      ),
    );
  }

  /** The recording that runs before this one. */
  takePrelude(): Recording {
    this.prelude ??= new Recording(this.number, this.#tick);
    return this.prelude;
  }

  /** Puts a launch before position `index`: a copy of a version that a later reader still needs. */
  insert(index: number, launch: Launch<Storage>): void {
    this.launches.splice(index, 0, launch);
    for (const [i, { buffer }] of launch.bindings.entries())
      if (launch.kernel.bindings[i]?.access === "write") buffer.isDefined = true;
    for (const write of this.#writes) if (write.index >= index) write.index++;
    if (this.backwardStart !== undefined && this.backwardStart >= index) this.backwardStart++;
  }

  /** Registers how to restore host state if the recording is dropped. */
  onDrop(undo: () => void): void {
    this.#undo.push(undo);
  }

  /** Restores all host state to what it was before the recording. */
  drop(): void {
    this.takeUndo()();
  }

  /** A function that restores all host state to what it was before the recording, also when it has closed. */
  takeUndo(): () => void {
    const [undo, prelude] = [this.#undo.splice(0).reverse(), this.prelude?.takeUndo()];
    return () => {
      for (const each of undo) each();
      prelude?.();
    };
  }

  /** Releases everything that was recorded: residents reference the recording of their last write for as long as they exist. */
  clear(): void {
    for (const list of [this.launches, this.inputs, this.transients, this.released])
      list.length = 0;
    this.backwardPasses.length = 0;
    this.backwardRanges.length = 0;
    this.completions.clear();
    this.prelude?.clear();
    this.prelude = undefined;
    this.#undo.length = 0;
    this.#writes.length = 0;
    this.casts.clear();
    this.wholeQuads.clear();
    this.notes = undefined;
    this.unsearched = undefined;
    this.kept.clear();
  }

  /**
   * Zeroes scratch that is read before it is written, as `allocate()` promises: a slot has the contents of its previous value.
   */
  #define(buffer: Storage): void {
    if (buffer.isDefined || buffer.hostData) return;
    buffer.isDefined = true;
    const { byteLength } = buffer;
    this.launches.push(fill({ buffer, offset: 0, length: byteLength / 2, dtype: "float16" }, 0));
  }

  #noteWrite({ buffer, offset, length, dtype }: Binding<Storage>): void {
    const event: WriteEvent = {
      from: offset,
      to: offset + bytesFor(dtype, length),
      clock: this.#tick(),
      recording: this,
      index: this.launches.length,
    };
    const undo = buffer.noteWrite(event);
    this.#writes.push(event);
    if (undo) this.onDrop(undo);
  }
}
