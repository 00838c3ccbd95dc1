import { describe, expect, it } from "vitest";
import { scalingDocument } from "./document.mjs";
import { exchangeTime, firstRanks, latencyOf, rateFor, stepTime } from "./model.mjs";

/** Two buckets of 1,000 bytes a chunk, ready after 10 and 20 ms, whose sums take 1 ms; then 4 ms of the optimizer. */
const alone = {
  step: 25,
  calls: [
    { begin: 10, bytes: 1000, isSecond: false },
    { begin: 11, bytes: 1000, isSecond: true },
    { begin: 20, bytes: 1000, isSecond: false },
    { begin: 21, bytes: 1000, isSecond: true },
  ],
};

describe("the time of a step over a network", () => {
  it("is that without one where an exchange is hidden, but for its last bucket", () => {
    // A collective takes 2 ms: the first bucket ends at 15, before the second is ready.
    expect(stepTime(alone, { latency: 1, bytesPerMs: 1000 })).toBe(20 + 2 + 1 + 2 + 4);
  });

  it("is that of the exchange where the wire is slow", () => {
    // A collective takes 101 ms, and each but the first waits for a sum.
    expect(stepTime(alone, { latency: 1, bytesPerMs: 10 })).toBe(10 + 4 * 101 + 3 + 4);
    expect(exchangeTime(alone, { latency: 1, bytesPerMs: 10 })).toBe(4 * 101);
  });

  it("has one collective a bucket for two ranks that send whole buckets, and two for more", () => {
    const whole = {
      step: 25,
      calls: [
        { begin: 10, bytes: 2000, isSecond: false },
        { begin: 20, bytes: 2000, isSecond: false },
      ],
    };
    const link = { latency: 1, bytesPerMs: 1000 };
    expect(stepTime(whole, link)).toBe(20 + 3 + 5);
    expect(exchangeTime(whole, link)).toBe(6);
    // Chunks of 500 bytes go to three others, twice.
    expect(exchangeTime(whole, link, 4)).toBe(2 * 2 * 2.5);
    expect(exchangeTime(whole, { latency: 0, bytesPerMs: 1 }, 4)).toBe(
      exchangeTime(alone, { latency: 0, bytesPerMs: 1 }, 4),
    );
  });

  it("of its exchange is that of a rate", () => {
    // 4,000 bytes in 8 ms.
    expect(rateFor(alone, 8)).toBe(4);
  });

  it("approaches twice the bytes with the ranks, and grows with the latency", () => {
    const at = (ranks) => exchangeTime(alone, { latency: 0, bytesPerMs: 1 }, ranks);
    expect([at(2), at(4), at(1000)]).toEqual([4000, 6000, 7992]);
    const latency = latencyOf({ ranks: 2, latency: 1 }, { ranks: 4, latency: 2 });
    expect(latency(10)).toBe(5);
    expect(firstRanks(100, (ranks) => latency(ranks) > 5)).toBe(11);
    expect(firstRanks(10, () => false)).toBeUndefined();
  });
});

it("the document has what was measured beside the model", () => {
  const link = { ranks: 2, latency: 1, bytesPerMs: 1000 };
  const of = (peers, wire, buckets) => ({ peers, wire, buckets, batch: 8 });
  const settings = ["float32", "float16"].flatMap((wire) =>
    [1, 5].map((buckets) => [wire, buckets]),
  );
  const stall = { longest: 3, own: 2 };
  const measured = (peers, step) =>
    settings.map((each) => ({ task: of(peers, ...each), step, stall, calls: alone.calls }));
  const text = scalingDocument({
    ...{ date: "2026-01-01", machine: "a machine" },
    empty: [{ task: of("none", "float32", 1), step: 24, stall }, ...measured("empty", 25)],
    rates: [{ megabits: 100, link, steps: measured("job", 30) }],
    paired: {
      date: "2026-01-02",
      weak: [
        {
          alone: { step: 24 },
          lockstep: { step: 26 },
          job: { task: { ...of("job", "float16", 5), model: "mlp" }, step: 48, stall },
        },
      ],
      overlap: {
        backward: 10,
        settings: [
          { megabits: 8, link, empty: measured("empty", 25)[3], job: measured("job", 27)[3] },
        ],
      },
      large: [
        { task: { numbers: 1e6 }, milliseconds: 90, stall },
        { task: { numbers: 1e6 }, milliseconds: 45, stall },
      ],
    },
    bytes: [{ hosts: 4, ranks: 1, link: { ranks: 4, latency: 2 }, float32: 4e6, float16: 2e6 }],
  });
  expect(text).toContain("| 100 | float16 | 5 | 30.0 | 29.0 | -3 % | 8.0 | 38 % |");
  expect(text).toContain("hide 75 % in float16 (8 Mbit/s, 8.0 ms)");
  expect(text).toContain("| 4 × 1 | 4.00 MB | 2.00 MB | 0.500 |");
  expect(text).toContain("stopped the event loop for at most 2.0 ms");
  expect(text).toContain("| MLP | 8 | 24.0 | 26.0 | 48.0 | 50 % |");
});
