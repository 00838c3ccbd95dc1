/** The number of values that are kept: programs whose shapes change all the time would keep ever more. */
const capacity = 4096;

/**
 * Caches values made from choices, of which three are sizes. Look-ups by numbers are several times as fast as those by a text of them, and
 * each step looks the same products up again.
 */
export class BySizes<Choices, Made> {
  readonly #make: (choices: Choices) => Made;
  readonly #isSame: (a: Choices, b: Choices) => boolean;
  readonly #made = new Map<number, Map<number, Map<number, Entry<Choices, Made>[]>>>();
  #count = 0;

  /**
   * @param make makes a value. It must be the same for equal choices.
   * @param isSame whether two choices with the same three sizes are equal. Choices are kept: they must not change.
   */
  constructor(make: (choices: Choices) => Made, isSame: (a: Choices, b: Choices) => boolean) {
    this.#make = make;
    this.#isSame = isSame;
  }

  /** The value for these choices, if it was made. */
  known(m: number, n: number, k: number, choices: Choices): Made | undefined {
    const entries = this.#made.get(m)?.get(n)?.get(k);
    if (entries)
      for (const entry of entries) if (this.#isSame(entry.choices, choices)) return entry.made;
    return undefined;
  }

  /** Makes the value for these choices, and keeps it. */
  make(m: number, n: number, k: number, choices: Choices): Made {
    const made = this.#make(choices);
    if (this.#count === capacity) {
      this.#made.clear();
      this.#count = 0;
    }
    this.#count++;
    const byN = this.#made.get(m) ?? new Map<number, Map<number, Entry<Choices, Made>[]>>();
    const byK = byN.get(n) ?? new Map<number, Entry<Choices, Made>[]>();
    this.#made.set(m, byN.set(n, byK.set(k, [...(byK.get(k) ?? []), { choices, made }])));
    return made;
  }
}

interface Entry<Choices, Made> {
  readonly choices: Choices;
  readonly made: Made;
}
