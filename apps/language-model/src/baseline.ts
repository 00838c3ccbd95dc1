import { DataError } from "@halfstep/data";

/** The score of an n-gram model of characters on held-out text. */
export interface NGramResult {
  /** Number of characters, the predicted one included. */
  readonly order: number;
  readonly bitsPerCharacter: number;
}

/**
 * The baseline by counting: interpolated Witten–Bell models of characters of orders 1 to `order` (Witten and Bell 1991; method C of
 * Chen and Goodman 1998, §2.5). Let a context h be followed n(h) times by T(h) different characters. The probability of c is then
 * P(c | h) = (n(h c) + T(h) · P(c | h without its first character)) / (n(h) + T(h)), down to 1 / V for V characters.
 *
 * @throws DataError where there is nothing to predict
 */
export function wittenBell(
  { train, heldOut }: { readonly train: string; readonly heldOut: string },
  order: number,
): readonly NGramResult[] {
  if (heldOut === "") throw new DataError("the held-out text", "is empty");
  const ids = new Map<string, number>();
  const idsOf = (text: string): Uint32Array => {
    const characters = [...text];
    const coded = new Uint32Array(characters.length);
    for (const [i, character] of characters.entries()) {
      const id = ids.get(character) ?? ids.size;
      ids.set(character, id);
      coded[i] = id;
    }
    return coded;
  };
  const seen = idsOf(train);
  const unseen = idsOf(heldOut);
  const counts = new NGramCounts(ids.size);
  count(counts, seen, order);
  return bits(counts, unseen, order, ids.size).map((sum, k) => ({
    order: k + 1,
    bitsPerCharacter: sum / unseen.length,
  }));
}

/** Counts all n-grams up to an order: each character after its contexts of every length. */
function count(counts: NGramCounts, ids: Uint32Array, order: number): void {
  const contexts = new Int32Array(order).fill(absent);
  contexts[0] = root;
  for (const id of ids)
    for (let k = order - 1; k >= 0; k--) {
      const context = contexts[k] as number;
      const gram = context === absent ? absent : counts.add(context, id);
      if (k + 1 < order) contexts[k + 1] = gram;
    }
}

/** −log2 of the probabilities of a text, summed, by order. */
function bits(
  counts: NGramCounts,
  ids: Uint32Array,
  order: number,
  characters: number,
): readonly number[] {
  const contexts = new Int32Array(order).fill(absent);
  contexts[0] = root;
  const grams = new Int32Array(order);
  const sums = new Array<number>(order).fill(0);
  for (const id of ids) {
    let probability = 1 / characters;
    for (let k = 0; k < order; k++) {
      const context = contexts[k] as number;
      const gram = context === absent ? absent : counts.find(context, id);
      grams[k] = gram;
      const [followed, kinds] = context === absent ? [0, 0] : counts.followers(context);
      if (followed > 0)
        probability = (counts.countOf(gram) + kinds * probability) / (followed + kinds);
      sums[k] = (sums[k] as number) - Math.log2(probability);
    }
    contexts.set(grams.subarray(0, order - 1), 1);
  }
  return sums;
}

const root = 0;
const absent = -1;

/**
 * A trie of n-grams. Its nodes are numbers; (node, character) leads to the node of the n-gram that is longer by the character,
 * by a hash table with linear probing: a `Map` of ten million look-ups per order would take minutes.
 */
class NGramCounts {
  readonly #characters: number;
  #keys = new Float64Array(1 << 16).fill(absent);
  #nodes = new Int32Array(1 << 16);
  #size = 1;
  #counts = new Uint32Array(1 << 15);
  /** The number of following characters, and of distinct ones. */
  #totals = new Uint32Array(1 << 15);
  #kinds = new Uint32Array(1 << 15);

  constructor(characters: number) {
    this.#characters = characters;
  }

  /** Counts a character after a context; the node of both. */
  add(context: number, id: number): number {
    let slot = this.#slot(context, id);
    if (this.#keys[slot] === absent) {
      if (2 * this.#size >= this.#keys.length) {
        this.#grow();
        slot = this.#slot(context, id);
      }
      this.#keys[slot] = context * this.#characters + id;
      this.#nodes[slot] = this.#size++;
      this.#kinds[context] = (this.#kinds[context] as number) + 1;
    }
    const gram = this.#nodes[slot] as number;
    this.#counts[gram] = (this.#counts[gram] as number) + 1;
    this.#totals[context] = (this.#totals[context] as number) + 1;
    return gram;
  }

  find(context: number, id: number): number {
    const slot = this.#slot(context, id);
    return this.#keys[slot] === absent ? absent : (this.#nodes[slot] as number);
  }

  countOf(gram: number): number {
    return gram === absent ? 0 : (this.#counts[gram] as number);
  }

  followers(context: number): readonly [total: number, kinds: number] {
    return [this.#totals[context] as number, this.#kinds[context] as number];
  }

  /** The slot of the key, or the free slot for it. */
  #slot(context: number, id: number): number {
    const key = context * this.#characters + id;
    const mask = this.#keys.length - 1;
    let slot = (Math.imul(context, 0x9e3779b1) ^ Math.imul(id, 0x85ebca6b)) >>> 0;
    slot = (slot ^ (slot >>> 15)) & mask;
    for (;;) {
      const found = this.#keys[slot];
      if (found === key || found === absent) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #grow(): void {
    const [keys, nodes] = [this.#keys, this.#nodes];
    this.#keys = new Float64Array(2 * keys.length).fill(absent);
    this.#nodes = new Int32Array(2 * keys.length);
    this.#counts = widened(this.#counts);
    this.#totals = widened(this.#totals);
    this.#kinds = widened(this.#kinds);
    for (const [old, key] of keys.entries()) {
      if (key === absent) continue;
      const slot = this.#slot(Math.floor(key / this.#characters), key % this.#characters);
      this.#keys[slot] = key;
      this.#nodes[slot] = nodes[old] as number;
    }
  }
}

function widened(values: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const wider = new Uint32Array(2 * values.length);
  wider.set(values);
  return wider;
}
