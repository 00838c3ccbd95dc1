import type { Kernel } from "@halfstep/device";
import type { Recording } from "../record/recording.js";

/** In how many recordings a kernel of one name is new before that is no chance. */
const suspicious = 16;

/** Names that are counted at a time: a program whose names are all new would fill the table otherwise. */
const mostNames = 1024;

/**
 * Notices kernels that are defined anew in every step, and tells once for each name: a kernel is the object, so that every such step is
 * planned and compiled anew.
 */
export class Redefinitions {
  readonly #seen = new WeakSet<Kernel>();
  readonly #counts = new Map<string, number>();

  /** Looks at a recording that had no plan yet. */
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
      `kernel "${name}" was defined anew in ${count} recordings, and each of them was planned and compiled anew: ` +
        "define kernels, expressions and update rules once, outside of steps",
    );
  }
}
