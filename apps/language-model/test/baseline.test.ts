import { DataError } from "@halfstep/data";
import { describe, expect, it } from "vitest";
import { wittenBell } from "../src/baseline.js";
import { readCorpus } from "../src/text.js";

/** Witten–Bell by its definition, with strings and Maps. */
function plainWittenBell(train: string, heldOut: string, order: number): number {
  const characters = new Set(train + heldOut).size;
  const followers = new Map<string, Map<string, number>>();
  for (let i = 0; i < train.length; i++)
    for (let k = 0; k < order && k <= i; k++) {
      const context = train.slice(i - k, i);
      const counts = followers.get(context) ?? new Map<string, number>();
      followers.set(context, counts);
      counts.set(train.charAt(i), (counts.get(train.charAt(i)) ?? 0) + 1);
    }
  const probability = (context: string, next: string): number => {
    const shorter = context === "" ? 1 / characters : probability(context.slice(1), next);
    const counts = followers.get(context);
    if (!counts) return shorter;
    const total = [...counts.values()].reduce((a, b) => a + b, 0);
    return ((counts.get(next) ?? 0) + counts.size * shorter) / (total + counts.size);
  };
  let bits = 0;
  for (let i = 0; i < heldOut.length; i++)
    bits -= Math.log2(probability(heldOut.slice(Math.max(0, i - order + 1), i), heldOut.charAt(i)));
  return bits / heldOut.length;
}

const [train, heldOut] = [
  "the state of the union is strong, and the state of the nation is stronger; ".repeat(3),
  "the union of the nations is a strong state (zounds)",
];

describe("Witten–Bell", () => {
  it("is what its definition says, for every order", () => {
    const results = wittenBell({ train, heldOut }, 5);
    expect(results.map(({ order }) => order)).toEqual([1, 2, 3, 4, 5]);
    for (const { order, bitsPerCharacter } of results)
      expect(bitsPerCharacter).toBeCloseTo(plainWittenBell(train, heldOut, order), 10);
  });

  it("knows nothing without a text to count: log2 of the number of characters", () => {
    const [result] = wittenBell({ train: "", heldOut: "abcdabcd" }, 1);
    expect(result?.bitsPerCharacter).toBeCloseTo(2, 12);
  });

  it("refuses to predict nothing", () => {
    expect(() => wittenBell({ train, heldOut: "" }, 2)).toThrow(DataError);
  });

  it("has the figures of the README on the State of the Union", async () => {
    const bits = wittenBell(await readCorpus(), 3).map(({ bitsPerCharacter }) => bitsPerCharacter);
    expect(bits.map((value) => value.toFixed(2))).toEqual(["4.34", "3.40", "2.66"]);
  });
});
