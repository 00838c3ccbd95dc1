import { expect, it } from "vitest";
import { type Counter, type Key, philox4x32 } from "./philox.js";

const all = 0xffffffff;

// From Random123's kat_vectors.
it.each<[Counter, Key, Counter]>([
  [
    [0, 0, 0, 0],
    [0, 0],
    [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
  ],
  [
    [all, all, all, all],
    [all, all],
    [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
  ],
  [
    [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
    [0xa4093822, 0x299f31d0],
    [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  ],
])("gives the known answer for counter %j and key %j", (counter, key, expected) => {
  expect(philox4x32(counter, key)).toEqual(expected);
});

it("multiplies exactly: words agree with rounds in BigInt", () => {
  const word = 0xffffffffn;
  const slow = (counter: Counter, key: Key): number[] => {
    let [c0, c1, c2, c3] = counter.map(BigInt) as [bigint, bigint, bigint, bigint];
    let [k0, k1] = key.map(BigInt) as [bigint, bigint];
    for (let round = 0; round < 10; round++) {
      const first = 0xd2511f53n * c0;
      const second = 0xcd9e8d57n * c2;
      [c0, c1, c2, c3] = [
        (second >> 32n) ^ c1 ^ k0,
        second & word,
        (first >> 32n) ^ c3 ^ k1,
        first & word,
      ];
      k0 = (k0 + 0x9e3779b9n) & word;
      k1 = (k1 + 0xbb67ae85n) & word;
    }
    return [c0, c1, c2, c3].map(Number);
  };
  // Each result is the next counter, so that words of all sizes are multiplied.
  let counter: Counter = [1, 0, all, 0x10000];
  const wrong: Counter[] = [];
  for (let i = 0; i < 500; i++) {
    const key: Key = [counter[3], i];
    const words = philox4x32(counter, key);
    if (slow(counter, key).some((value, at) => value !== words[at])) wrong.push(counter);
    counter = words;
  }
  expect(wrong).toEqual([]);
});
