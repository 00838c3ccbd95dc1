import { ConfigFields } from "@halfstep/models";
import { UsageError } from "@halfstep/trainer/cli";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readCorpus } from "../src/text.js";
import { learnBytePairs } from "../src/tokenizers/byte-pairs.js";
import { Characters } from "../src/tokenizers/characters.js";
import { learnMerges } from "../src/tokenizers/merges.js";
import { Subwords } from "../src/tokenizers/subwords.js";
import { savedTokenizer } from "../src/tokenizers/tokenizer.js";

const sample = (await readCorpus()).heldOut.slice(0, 50_000);

describe("characters", () => {
  it("are numbered by code point, and come back", () => {
    const tokenizer = Characters.of("cab 𝄞 cab");
    expect(tokenizer.vocabSize).toBe(5);
    expect([...tokenizer.encode("abc 𝄞")]).toEqual([1, 2, 3, 0, 4]);
    expect(tokenizer.decode([1, 2, 3, 0, 4])).toBe("abc 𝄞");
  });

  it("that the model does not know are named", () => {
    expect(() => Characters.of("abc").encode("abd")).toThrow(UsageError);
    expect(() => Characters.of("abc").encode("abd")).toThrow(/^"d" is none of the 3 characters/);
  });
});

describe("byte pairs", () => {
  const tokenizer = new Subwords(learnBytePairs(sample, 512));

  it("are as many as asked for, and shorten the text", () => {
    expect(tokenizer.vocabSize).toBe(512);
    expect(tokenizer.encode(sample).length).toBeLessThan(0.6 * sample.length);
  });

  it("give every text back, characters that were never seen included", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
      }),
    );
    expect(tokenizer.decode(tokenizer.encode(sample))).toBe(sample);
  });

  it("merge the most frequent pair first, and of equals the first", () => {
    // "ab" is in 5 words, then "abc" in 3; "xy" and "de" in 2 each.
    const words = ["abc", "abc", "abc", "ab", "ab", "xy", "xy", "de", "de", "q"];
    const counted = words.map((word) => ({ symbols: [...word], count: 1 }));
    expect(learnMerges(counted, 10).map((pair) => pair.join("+"))).toEqual([
      "a+b",
      "ab+c",
      "d+e",
      "x+y",
    ]);
  });

  it("overlap in no word: aaa is one pair and a rest", () => {
    expect(learnMerges([{ symbols: [..."aaa"], count: 2 }], 2)).toEqual([
      ["a", "a"],
      ["aa", "a"],
    ]);
  });
});

describe("a saved tokenizer", () => {
  it.each([Characters.of(sample), new Subwords(learnBytePairs(sample.slice(0, 5000), 300))])(
    "encodes as it did",
    (tokenizer) => {
      const fields = new ConfigFields(JSON.parse(JSON.stringify(tokenizer.state())), "step-1");
      const saved = savedTokenizer(fields, tokenizer.vocabSize, "step-1");
      expect(saved.encode(sample)).toEqual(tokenizer.encode(sample));
    },
  );

  it("does the same as Hugging Face's would", () => {
    const tokenizer = Characters.of(sample);
    const theirs = new Subwords(JSON.parse(JSON.stringify(tokenizer.json)));
    expect(theirs.vocabSize).toBe(tokenizer.vocabSize);
    expect(theirs.encode(sample)).toEqual(tokenizer.encode(sample));
    expect(theirs.decode(theirs.encode(sample))).toBe(sample);
    expect(() => theirs.encode("€")).toThrow(UsageError);
  });

  it("that is none is refused", () => {
    const refused = (state: unknown) => () =>
      savedTokenizer(new ConfigFields(state, "step-1"), 3, "step-1");
    expect(refused({ type: "words" })).toThrow(/^step-1: has type "words": it may be char, bpe/);
    expect(refused({ type: "char", characters: "aab" })).toThrow(/a model of 3 different ones/);
    expect(refused({ type: "char", characters: "ab" })).toThrow(/has a tokenizer of 2 characters/);
    expect(refused({ type: "bpe", json: "{" })).toThrow(/^step-1: has a model that is no BPE/);
  });
});
