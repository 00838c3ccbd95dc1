/** Two neighbours that become one symbol. */
export type Merge = readonly [left: string, right: string];

export interface CountedWord {
  readonly symbols: readonly string[];
  /** How often the word occurs. */
  readonly count: number;
}

interface Word {
  symbols: readonly string[];
  readonly count: number;
}

/** The words of a pair, and its total count. */
interface Pair {
  readonly merge: Merge;
  count: number;
  readonly words: Set<Word>;
}

/**
 * Byte-pair encoding's merges (Sennrich et al. 2016, algorithm 1): repeatedly, the most frequent pair of neighbours becomes a
 * symbol. Ties go to the first pair in the order of code units, so that a text always has the same merges. There are fewer
 * where no pair occurs twice any more.
 */
export function learnMerges(words: Iterable<CountedWord>, count: number): readonly Merge[] {
  const pairs = new Pairs();
  for (const word of words) pairs.add({ ...word }, 1);
  const merges: Merge[] = [];
  while (merges.length < count) {
    const best = pairs.mostFrequent();
    if (!best || best.count < 2) break;
    merges.push(best.merge);
    // A copy, because merging moves words from the set to those of other pairs.
    for (const word of [...best.words]) {
      pairs.add(word, -1);
      word.symbols = merged(word.symbols, best.merge);
      pairs.add(word, 1);
    }
  }
  return merges;
}

/** The pairs of neighbours in all words. */
class Pairs {
  readonly #pairs = new Map<string, Pair>();

  /** Takes a word in, or with -1 out. */
  add(word: Word, sign: 1 | -1): void {
    for (let i = 1; i < word.symbols.length; i++) {
      const merge = [word.symbols[i - 1] as string, word.symbols[i] as string] as const;
      const key = merge.join(" ");
      let pair = this.#pairs.get(key);
      if (!pair) {
        pair = { merge, count: 0, words: new Set() };
        this.#pairs.set(key, pair);
      }
      pair.count += sign * word.count;
      if (sign === 1) pair.words.add(word);
      else pair.words.delete(word);
      if (pair.count === 0) this.#pairs.delete(key);
    }
  }

  mostFrequent(): Pair | undefined {
    let best: Pair | undefined;
    for (const pair of this.#pairs.values())
      if (!best || pair.count > best.count || (pair.count === best.count && isBefore(pair, best)))
        best = pair;
    return best;
  }
}

const isBefore = ({ merge: [a, b] }: Pair, { merge: [c, d] }: Pair): boolean =>
  a < c || (a === c && b < d);

function merged(symbols: readonly string[], [left, right]: Merge): readonly string[] {
  const result: string[] = [];
  for (let i = 0; i < symbols.length; i++) {
    const symbol = symbols[i] as string;
    if (symbol === left && symbols[i + 1] === right) {
      result.push(left + right);
      i++;
    } else result.push(symbol);
  }
  return result;
}
