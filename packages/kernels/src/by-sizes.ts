/** The number of values that are kept: programs whose shapes change all the time would keep ever more. */
const capacity = 4096;

/**
 * Caches values made from three sizes and further choices. Look-ups by numbers are several times as fast as those by a text of them, and
 * each step looks the same products up again.
 */
export class BySizes<
  Choices extends { readonly m: number; readonly n: number; readonly k: number },
  Made,
> {
  readonly #make: (choices: Choices) => Made;
  readonly #isSame: (a: Choices, b: Choices) => boolean;
  /** By m, n and k; the rest of the choices is compared. */
  readonly #made = new Map<number, Map<number, Map<number, Entry<Choices, Made>[]>>>();
  #count = 0;

  /** @param isSame whether the choices of equal sizes are equal. */
  constructor(make: (choices: Choices) => Made, isSame: (a: Choices, b: Choices) => boolean) {
    this.#make = make;
    this.#isSame = isSame;
  }

  /** The value for these choices; made on first use. */
  get(choices: Choices): Made {
    const { m, n, k } = choices;
    const known = this.#made.get(m)?.get(n)?.get(k);
    if (known)
      for (const entry of known) if (this.#isSame(entry.choices, choices)) return entry.made;
    const made = this.#make(choices);
    this.#add({ choices, made });
    return made;
  }

  #add(entry: Entry<Choices, Made>): void {
    if (this.#count === capacity) {
      this.#made.clear();
      this.#count = 0;
    }
    this.#count++;
    const { m, n, k } = entry.choices;
    const byN = this.#made.get(m) ?? new Map<number, Map<number, Entry<Choices, Made>[]>>();
    const byK = byN.get(n) ?? new Map<number, Entry<Choices, Made>[]>();
    this.#made.set(m, byN.set(n, byK.set(k, [...(byK.get(k) ?? []), entry])));
  }
}

interface Entry<Choices, Made> {
  readonly choices: Choices;
  readonly made: Made;
}
