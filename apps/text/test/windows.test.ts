import fc from "fast-check";
import { expect, it } from "vitest";
import { BertTokenizer } from "../src/tokenizer.js";
import { joined, windowsOf } from "../src/windows.js";
import { WordFeatures } from "../src/word-features.js";

const letters = [..."abcdefghij"];
const vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ...letters, "##x"];
const tokenizer = new BertTokenizer(vocabulary);
const tokens = (ids: readonly number[]): string =>
  ids
    .map((id) => vocabulary[id])
    .slice(1, -1)
    .join(" ");

it("a sentence that fits is one window", () => {
  expect(windowsOf(["a", "b"], tokenizer, { maxLength: 4 })).toEqual([
    { ids: [2, 5, 6, 3], starts: [1, 2], first: 0, features: undefined },
  ]);
  expect(windowsOf([], tokenizer, { maxLength: 4 }).length).toBe(1);
});

it("the windows of a longer one share a quarter of their words", () => {
  const windows = windowsOf(letters, tokenizer, { maxLength: 6 });
  expect(windows.map(({ ids }) => tokens(ids))).toEqual(["a b c d", "d e f g", "g h i j"]);
  expect(windows.map(({ first }) => first)).toEqual([0, 3, 6]);
});

it("shared words have the labels of the window in which they are farther from the end", () => {
  const windows = [{ first: 0 }, { first: 4 }, { first: 8 }].map((each) => ({ ...each, ids: [] }));
  const labels = [0, 1, 2].map((window) => new Array<number>(8).fill(window));
  expect(joined(windows, labels).join("")).toBe("0000001111222222");
});

it("words have the features that they have in the whole sentence", () => {
  const features = WordFeatures.of([letters], 1);
  const windows = windowsOf(letters, tokenizer, { maxLength: 5, features });
  const all = features.encode(letters);
  for (const { first = 0, starts, features: own } of windows)
    expect(own).toEqual(all.slice(first, first + starts.length));
});

it("in sight of the document a window has the words before and behind it", () => {
  const context = { sentences: [["j"], letters.slice(0, 5), ["i"]], place: 1 };
  const windows = windowsOf(letters.slice(0, 5), tokenizer, { maxLength: 6, context });
  // The second window has two words, and room for two: of both sides one.
  expect(windows.map(({ ids }) => tokens(ids))).toEqual(["a b c d", "c d e i"]);
  expect(windows.map(({ starts }) => starts)).toEqual([
    [1, 2, 3, 4],
    [2, 3],
  ]);
});

it("every word has one label, whatever the length of words and windows", () => {
  // A word of n letters has n tokens.
  const words = fc.array(fc.integer({ min: 1, max: 9 }).map((n) => `a${"x".repeat(n - 1)}`));
  fc.assert(
    fc.property(words, fc.integer({ min: 3, max: 20 }), (sentence, maxLength) => {
      const windows = windowsOf(sentence, tokenizer, { maxLength });
      for (const { ids, starts } of windows) {
        expect(ids.length).toBeLessThanOrEqual(maxLength);
        expect(starts.every((start) => ids[start] === 5)).toBe(true);
      }
      const places = windows.map(({ first = 0, starts }) => starts.map((_, i) => first + i));
      expect(joined(windows, places)).toEqual([...sentence.keys()]);
    }),
  );
});
