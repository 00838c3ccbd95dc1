import type { Kernel } from "@halfstep/device";
import type { Recording } from "../record/recording.js";

/** The number of recordings with a new kernel of one name from which a warning is given. */
const suspicious = 16;

/** Most names that are counted at a time, so that a program whose names are all new cannot fill the table. */
const mostNames = 1024;

/**
 * Detects kernels that are defined anew in every step, and warns once for each name. A kernel is identified by its object, so every
 * such step is planned and compiled anew.
 */
export class Redefinitions {
  readonly #seen = new WeakSet<Kernel>();
  readonly #counts = new Map<string, number>();

  /** Counts the kernels of a recording that had no plan yet. */
  note({ launches }: Recording): void {
    const names = new Set<string>();
    for (const { kernel } of launches) {
      if (this.#seen.has(kernel)) continue;
      this.#seen.add(kernel);
      names.add(`${kernel.name} ${kernel.variant}`.trim());
    }
    for (const name of names) this.#count(name);
    if (this.#counts.size > mostNames) this.#counts.clear();
  }

  #count(name: string): void {
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    if (count !== suspicious) return;
    console.warn(
      `kernel "${name}" was defined anew in ${count} recordings, and compiled in each: ` +
        "define kernels, expressions and update rules once, outside of steps",
    );
  }
}
