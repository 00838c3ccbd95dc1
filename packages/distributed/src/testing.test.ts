import { describe, expect, it } from "vitest";
import { ExchangeError } from "./errors.js";
import { simulated } from "./testing.js";
import { Exchange } from "./wire/exchange.js";

const layouts = [
  ["a", "a"],
  ["a", "b"],
  ["a", "b", "b"],
  ["a", "a", "b", "b"],
];

/** Three buckets of whole numbers on a network of this seed: exact in float16. The outcome of each rank. */
async function run(
  seed: number,
): Promise<{ lost: boolean; outcomes: PromiseSettledResult<number[]>[] }> {
  const hosts = layouts[seed % layouts.length] as string[];
  const lost = seed % 5 === 0;
  const ranks = simulated(hosts.length, { seed, hosts, loss: lost ? 0.03 : 0, deadline: 1000 });
  const outcomes = await Promise.allSettled(
    ranks.map(async (carrier) => {
      const exchange = new Exchange(carrier, { wire: "float16" });
      const buckets = [1, 2, 3].map((bucket) =>
        Float32Array.from(
          { length: 3 + bucket },
          (_, i) => hosts.length * (bucket + i) + 12 * carrier.rank,
        ),
      );
      // All are under way at once.
      await Promise.all(buckets.map((values) => exchange.mean(values)));
      return buckets.flatMap((values) => [...values]);
    }),
  );
  return { lost, outcomes };
}

const expected = (ranks: number): number[] =>
  [1, 2, 3].flatMap((bucket) =>
    Array.from({ length: 3 + bucket }, (_, i) => ranks * (bucket + i) + (12 * (ranks - 1)) / 2),
  );

describe("a thousand runs with delays, reordering and losses", () => {
  it("end with the right sum or by a deadline", async () => {
    let deadlines = 0;
    for (let seed = 0; seed < 1000; seed++) {
      const { lost, outcomes } = await run(seed);
      for (const outcome of outcomes)
        if (outcome.status === "fulfilled")
          expect(outcome.value).toEqual(expected(outcomes.length));
        else {
          expect(lost && outcome.reason instanceof ExchangeError).toBe(true);
          expect(outcome.reason.failure).toBe("deadline");
          deadlines++;
        }
    }
    expect(deadlines).toBeGreaterThan(100);
  });
});
