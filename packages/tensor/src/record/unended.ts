import type { Recording } from "./recording.js";

/** Runs a recording. `onEnd` is called once, when all of it is submitted, or when it is lost because a function of the host failed. */
export type RunRecording = (recording: Recording, onEnd: (isLost: boolean) => void) => void;

interface Entry {
  undo: () => void;
  isEnded: boolean;
}

/** The recordings whose runs wait for functions of the host. If one is lost, so are all after it: their host state is restored, too. */
export class Unended {
  /** The oldest first. */
  readonly #entries: Entry[] = [];

  /** @param abandon drops the open recording, whose host state is newer than all of these. */
  open(abandon: () => void): {
    readonly onEnd: (isLost: boolean) => void;
    /** Keeps what restores the host state before a recording until its run has ended. */
    keep(recording: Recording): void;
  } {
    const entry: Entry = { undo: () => {}, isEnded: false };
    return {
      onEnd: (isLost) => {
        if (entry.isEnded) return;
        if (isLost) {
          if (!this.#entries.includes(entry)) return;
          abandon();
          for (const { undo, isEnded } of this.#entries.splice(0).reverse()) if (!isEnded) undo();
        }
        entry.isEnded = true;
      },
      keep: (recording) => {
        while (this.#entries[0]?.isEnded) this.#entries.shift();
        if (entry.isEnded) return;
        entry.undo = recording.takeUndo();
        this.#entries.push(entry);
      },
    };
  }
}
