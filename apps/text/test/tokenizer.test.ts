import { describe, expect, it } from "vitest";
import { padded, shuffledByLength, sortedByLength } from "../src/batches.js";
import { masked } from "../src/masked-lm.js";
import { dataPackage } from "../src/tasks.js";
import { BertTokenizer } from "../src/tokenizer.js";
import { bertVocabulary, restrictedVocabulary } from "../src/vocabulary.js";

const vocabulary = await bertVocabulary(await dataPackage("vocabulary"));
const tokenizer = new BertTokenizer(vocabulary);

describe("BERT's tokens", () => {
  it("are those of BERT base, uncased", () => {
    expect(vocabulary.length).toBe(30_522);
    expect(tokenizer.ids).toEqual({
      ...{ "[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103 },
    });
    // What transformers' BertTokenizer gives for bert-base-uncased.
    expect(tokenizer.encode("Hello, my dog is cute", 20).ids).toEqual([
      101, 7592, 1010, 2026, 3899, 2003, 10140, 102,
    ]);
    expect(tokenizer.tokenize("The Café's UNAFFABLE [MASK].")).toEqual([
      ..."the cafe ' s una ##ffa ##ble [MASK] .".split(" "),
    ]);
  });

  it("are cut at a length; words that do not fit whole are left out", () => {
    expect(tokenizer.encode("my dog is cute", 4).ids).toEqual([101, 2026, 3899, 102]);
    const { ids, starts } = tokenizer.encodeWords(["my", "unaffable", "dog"], 6);
    expect(starts).toEqual([1, 2]);
    expect(ids).toEqual([101, 2026, ...tokenizer.encode("unaffable", 9).ids.slice(1, -1), 102]);
    expect(tokenizer.encodeWords(["my", "unaffable"], 5).starts).toEqual([1]);
    expect(tokenizer.encodeWords(["my", "unaffable", "dog"], 6, { first: 1 })).toEqual({
      ids: [101, ...tokenizer.encode("unaffable dog", 6).ids.slice(1, -1), 102],
      starts: [1, 4],
    });
    // Of a word that fits nowhere there are the first tokens.
    expect(tokenizer.encodeWords(["unaffable"], 4)).toEqual({
      ids: tokenizer.encode("unaffable", 4).ids,
      starts: [1],
    });
    expect(tokenizer.encodeWords(["\u0001", "dog"], 6)).toEqual({
      ids: [101, 100, 3899, 102],
      starts: [1, 2],
    });
  });

  it("that are rare fall apart", () => {
    const texts = ["running running running dogs", "a dogmatic dog dog dog"];
    const small = restrictedVocabulary(vocabulary, texts, 2, (tokens) => {
      const own = new BertTokenizer(tokens);
      return (text) => own.tokenize(text);
    });
    expect(small.slice(0, 5)).toEqual(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]);
    expect(small).toEqual(expect.arrayContaining(["running", "dog", "a", "##z"]));
    expect(small).not.toContain("dogs");
    expect(new BertTokenizer(small).tokenize("running dogs")).toEqual(["running", "dog", "##s"]);
  });
});

const examples = Array.from({ length: 1000 }, (_, i) => ({
  ids: Array.from({ length: 3 + ((i * 37) % 90) }, () => i),
}));

describe("batches", () => {
  const options = { batchSize: 16, seed: 1, epoch: 0 };
  const idsOf = (batches: readonly (readonly { ids: readonly number[] }[])[]): number[] =>
    batches.flat().map(({ ids }) => ids[0] as number);

  it("hold every example once, in an order of seed and epoch", () => {
    const batches = shuffledByLength(examples, options);
    expect(idsOf(batches).sort((a, b) => a - b)).toEqual(examples.map((_, i) => i));
    expect(idsOf(shuffledByLength(examples, options))).toEqual(idsOf(batches));
    expect(idsOf(shuffledByLength(examples, { ...options, epoch: 1 }))).not.toEqual(idsOf(batches));
    expect(idsOf(shuffledByLength(examples, { ...options, seed: 2 }))).not.toEqual(idsOf(batches));
  });

  it("have little padding", () => {
    const tokens = examples.reduce((sum, { ids }) => sum + ids.length, 0);
    const used = shuffledByLength(examples, options).reduce((sum, batch) => {
      const [count, length] = padded(
        batch.map(({ ids }) => ids),
        0,
        128,
      ).shape;
      return sum + count * length;
    }, 0);
    expect(used / tokens).toBeLessThan(1.4);
  });

  it("are rectangles that tell what is padding", () => {
    expect(padded([[5, 6], [7]], 9, 3)).toEqual({
      values: Uint32Array.of(5, 6, 9, 7, 9, 9),
      mask: Uint32Array.of(1, 1, 0, 1, 0, 0),
      shape: [2, 3],
    });
    expect(padded([[5]], 0, 128).shape).toEqual([1, 16]);
    expect(sortedByLength(examples, 300).map((batch) => batch.length)).toEqual([
      300, 300, 300, 100,
    ]);
  });
});

describe("masks", () => {
  const text = { ids: [2, ...Array.from({ length: 20 }, (_, i) => 10 + i), 3] };
  const options = { seed: 3, epoch: 0, mask: 4, vocabSize: 1000, share: 0.15 };

  it("hide a share of a text, and never its ends", () => {
    const all = Array.from({ length: 2000 }, (_, i) => masked(text, i, options));
    expect(all.every(({ places }) => places.length === 3)).toBe(true);
    expect(
      all.every(({ places, hidden }) => places.every((p, i) => text.ids[p] === hidden[i])),
    ).toBe(true);
    const places = all.flatMap((each) => each.places);
    expect([Math.min(...places), Math.max(...places)]).toEqual([1, 20]);
    const shown = all.flatMap(({ ids, places }) => places.map((place) => ids[place]));
    const share = (is: (id: number, i: number) => boolean): number =>
      shown.filter((id, i) => is(id as number, i)).length / shown.length;
    const hidden = all.flatMap((each) => each.hidden);
    expect(share((id) => id === 4)).toBeCloseTo(0.8, 1);
    expect(share((id, i) => id === hidden[i])).toBeCloseTo(0.1, 1);
    expect(
      all.every(({ ids, places }) =>
        ids.every((id, i) => places.includes(i) || id === text.ids[i]),
      ),
    ).toBe(true);
  });

  it("are others in each epoch, and the same for the same seed", () => {
    expect(masked(text, 5, options)).toEqual(masked(text, 5, options));
    const epochs = [0, 1, 2, 3].map((epoch) =>
      masked(text, 5, { ...options, epoch }).places.join(),
    );
    expect(new Set(epochs).size).toBeGreaterThan(1);
    expect(masked({ ids: [2, 10, 3] }, 0, options).places).toEqual([1]);
  });
});
