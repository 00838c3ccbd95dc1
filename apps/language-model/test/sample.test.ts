import { describe, expect, it } from "vitest";
import { draw } from "../src/sample.js";

/** Probabilities 0.5, 0.25, 0.125, 0.125. */
const logits = [3, 2, 1, 1].map((exponent) => exponent * Math.LN2);

/** How often each token is drawn when numbers go evenly through [0, 1). */
function shares(options: Omit<Parameters<typeof draw>[1], "temperature">, temperature = 1) {
  const counts = [0, 0, 0, 0];
  const draws = 1024;
  for (let i = 0; i < draws; i++) {
    const token = draw(logits, { temperature, ...options }, () => (i + 0.5) / draws);
    counts[token] = (counts[token] as number) + 1;
  }
  return counts.map((count) => count / draws);
}

describe("a token is drawn", () => {
  it("by the probabilities of the logits", () => {
    expect(shares({})).toEqual([0.5, 0.25, 0.125, 0.125]);
  });

  it("more sharply at a lower temperature, and surely at 0", () => {
    const [first, second] = shares({}, 0.5) as [number, number];
    expect(first / second).toBeCloseTo(4, 1);
    expect(shares({}, 0)).toEqual([1, 0, 0, 0]);
  });

  it("from the likeliest k", () => {
    expect(shares({ topK: 1 })).toEqual([1, 0, 0, 0]);
    expect(shares({ topK: 2 }).map((share) => Math.round(share * 3))).toEqual([2, 1, 0, 0]);
  });

  it("from the fewest whose probabilities are enough", () => {
    expect(shares({ topP: 0.5 })).toEqual([1, 0, 0, 0]);
    expect(shares({ topP: 0.51 }).slice(2)).toEqual([0, 0]);
    expect(shares({ topP: 0 })).toEqual([0, 0, 0, 0].with(0, 1));
  });
});
