import { requestTestDevice } from "@halfstep/device/testing";
import { cpuRuntime, gpuRuntime, HostOpError } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { distance, type EmbeddingRank, openRank, words } from "../../test/embedding-ranks.js";
import { cutCarrier } from "../../test/training-ranks.js";
import type { Carrier } from "../carrier.js";
import { inProcess } from "../in-process/in-process.js";

/** Tokens of a step, some of them several times. */
const tokensOf = (count: number, step: number): Uint32Array =>
  Uint32Array.from({ length: count }, (_, i) => (((i * i + step) % 7) * 5 + (i % 3)) % words);

/** Cuts tokens among ranks. */
const cut = (tokens: Uint32Array, counts: readonly number[]): Uint32Array[] => {
  let start = 0;
  return counts.map((count) => {
    start += count;
    return tokens.subarray(start - count, start);
  });
};

/** One rank that trains alone on the global batches. */
const openAlone = (dtype: "float32" | "float16" = "float32"): EmbeddingRank =>
  openRank(inProcess(1)[0] as Carrier, {}, { dtype });

async function expectEqual(ranks: readonly EmbeddingRank[], what: string): Promise<void> {
  const all = await Promise.all(ranks.map((rank) => rank.parameters()));
  for (const [i, each] of all.entries()) expect(each === all[0], `${what}, rank ${i}`).toBe(true);
}

const stagesOf = ({ runtime }: EmbeddingRank): (string | undefined)[] =>
  runtime.lastPlan?.hostOps.map(({ part }) => part.rows?.stage) ?? [];

describe("embeddings of ranks", () => {
  test.each([
    ["float32", ["a", "b"], [10, 10], "float32", 1e-4],
    ["float32", ["a", "b"], [3, 17], "float32", 1e-4],
    ["float32", ["a", "b", "c"], [9, 10, 8], "float32", 1e-4],
    ["float16", ["a", "b"], [7, 9], "float16", 5e-3],
    ["bfloat16", ["a", "b"], [12, 4], "float32", 2e-2],
    ["auto", ["a", "a", "b", "b"], [6, 7, 6, 5], "float32", 5e-3],
    ["auto", ["a", "a"], [6, 7], "float16", 5e-3],
  ] as const)(
    "over %s, on hosts %j with %j tokens, in %s: the parameters of one rank",
    async (wire, hosts, counts, dtype, limit) => {
      const carriers = inProcess(hosts.length, { hosts });
      const ranks = carriers.map((carrier) => openRank(carrier, { wire }, { dtype }));
      const alone = openAlone(dtype);
      const count = counts.reduce((a, b) => a + b, 0);
      for (let step = 0; step < 12; step++) {
        const tokens = tokensOf(count, step);
        await alone.step([tokens]);
        const shares = cut(tokens, counts);
        await Promise.all(ranks.map((rank, i) => rank.step([shares[i] as Uint32Array])));
        await expectEqual(ranks, `step ${step}`);
      }
      const [found = [], right] = [await ranks[0]?.values(), await alone.values()];
      expect(distance(found, right)).toBeLessThan(limit);
      // The tied one in two stages, and the other one, which has rows alone.
      expect(stagesOf(ranks[0] as EmbeddingRank)).toEqual(["rest", undefined, "rows", "rows"]);
    },
  );

  test("that have more rows than places are averaged whole, in as many bytes as before", async () => {
    const bytesOf = async (tokens: Uint32Array, leastBytes: number): Promise<number> => {
      const carriers = inProcess(4, { hosts: ["a", "b", "c", "d"] });
      const ranks = carriers.map((carrier) => openRank(carrier, { wire: "float32", leastBytes }));
      await Promise.all(ranks.map((rank) => rank.step([tokens])));
      await expectEqual(ranks, "the step");
      const alone = openAlone();
      await alone.step([tokens]);
      const [found = [], right] = [await ranks[0]?.values(), await alone.values()];
      expect(distance(found, right)).toBeLessThan(1e-5);
      return carriers[0]?.traffic.bytes as number;
    };
    const all = Uint32Array.from({ length: words }, (_, i) => i);
    const whole = await bytesOf(all, 2 ** 20);
    // Headers, and lengths of which each rank gets an equal part.
    expect(await bytesOf(all, 600)).toBeLessThan(whole + 600);
    expect(await bytesOf(all.subarray(0, 4), 600)).toBeLessThan(whole * 0.8);
  });

  test.each(["float32", "float16"] as const)(
    "over %s: rows that are not finite skip everywhere",
    async (wire) => {
      const carriers = inProcess(2, { hosts: ["a", "b"] });
      const ranks = carriers.map((carrier) => openRank(carrier, { wire }, { clip: 1 }));
      const tokens = tokensOf(12, 0);
      await Promise.all(ranks.map((rank) => rank.step([tokens])));
      const before = await ranks[0]?.parameters();
      await Promise.all(
        ranks.map((rank, i) => rank.step([tokens], { rowFactor: i === 1 ? Infinity : 1 })),
      );
      await expectEqual(ranks, "the bad step");
      expect(await ranks[0]?.parameters()).toBe(before);
      await Promise.all(
        ranks.map((rank, i) => rank.step([tokens], { rowFactor: i === 1 ? 2 ** 20 : 1 })),
      );
      await expectEqual(ranks, "a step with large rows");
      expect(await ranks[0]?.parameters()).not.toBe(before);
      for (const rank of ranks)
        expect((await rank.outcomes()).map(({ foundInf }) => foundInf)).toEqual([
          false,
          true,
          false,
        ]);
    },
  );

  test.each([false, true])("add micro-batches up, recorded apart: %s", async (areApart) => {
    const carriers = inProcess(2, { hosts: ["a", "b"] });
    const ranks = carriers.map((carrier) => openRank(carrier, { wire: "float32" }));
    const alone = openAlone();
    for (let step = 0; step < 4; step++) {
      const halves = cut(tokensOf(24, step), [12, 12]);
      await alone.step(halves);
      const shares = halves.map((half) => cut(half, [6, 6]));
      await Promise.all(
        ranks.map((rank, i) =>
          rank.step(
            shares.map((parts) => parts[i] as Uint32Array),
            { areApart },
          ),
        ),
      );
      await expectEqual(ranks, `step ${step}`);
      expect(stagesOf(ranks[0] as EmbeddingRank).filter((stage) => stage === "rest")).toHaveLength(
        2,
      );
    }
    const [found = [], right] = [await ranks[0]?.values(), await alone.values()];
    expect(distance(found, right)).toBeLessThan(1e-4);
  });

  test("leave out a rank that has no samples", async () => {
    const carriers = inProcess(2, { hosts: ["a", "b"] });
    const ranks = carriers.map((carrier) => openRank(carrier, { wire: "float32" }));
    const alone = openAlone();
    for (let step = 0; step < 4; step++) {
      const whole = tokensOf(9, step);
      await alone.step([whole]);
      await Promise.all(
        ranks.map((rank, i) =>
          i === 0
            ? rank.step([whole])
            : rank.step([whole.subarray(3, 4)], { weight: 0, rowFactor: Infinity }),
        ),
      );
      await expectEqual(ranks, `step ${step}`);
    }
    const [found = [], right] = [await ranks[0]?.values(), await alone.values()];
    expect(distance(found, right)).toBeLessThan(1e-4);
  });

  test("are exchanged in the same parts where only some ranks search their steps", async () => {
    const carriers = inProcess(3, { hosts: ["a", "b", "c"] });
    const runtimes = [
      cpuRuntime({ provenance: "always" }),
      cpuRuntime({ underflow: "always" }),
      cpuRuntime(),
    ];
    const ranks = carriers.map((carrier, i) =>
      openRank(carrier, { wire: "float16" }, { runtime: runtimes[i] as never, dtype: "float16" }),
    );
    const alone = openAlone("float16");
    for (let step = 0; step < 3; step++) {
      const tokens = tokensOf(15, step);
      await alone.step([tokens]);
      const shares = cut(tokens, [5, 5, 5]);
      await Promise.all(ranks.map((rank, i) => rank.step([shares[i] as Uint32Array])));
      await expectEqual(ranks, `step ${step}`);
      for (const rank of ranks) expect(stagesOf(rank)).toEqual(stagesOf(ranks[2] as EmbeddingRank));
    }
    const [found = [], right] = [await ranks[0]?.values(), await alone.values()];
    expect(distance(found, right)).toBeLessThan(5e-3);
  });

  test("that cannot be exchanged leave the parameters as they are", async () => {
    for (const failing of ["rows in bucket", "bucket 1 of"]) {
      let isCut = false;
      const carriers = inProcess(2, { hosts: ["a", "b"] }).map((carrier) =>
        cutCarrier(carrier, (label) => isCut && label.startsWith(failing)),
      );
      const ranks = carriers.map((carrier) => openRank(carrier, { wire: "float16" }));
      await Promise.all(ranks.map((rank) => rank.step([tokensOf(8, 0)])));
      const before = await ranks[0]?.parameters();
      isCut = true;
      const ends = await Promise.all(
        ranks.map((rank) => rank.step([tokensOf(8, 1)]).catch((reason: unknown) => reason)),
      );
      for (const end of ends) expect(end).toBeInstanceOf(HostOpError);
      expect(await ranks[0]?.parameters()).toBe(before);
    }
  });

  test("on a GPU and on the CPU train together", async () => {
    const device = await requestTestDevice();
    const carriers = inProcess(2, { hosts: ["a", "b"] });
    const ranks = carriers.map((carrier, i) =>
      openRank(
        carrier,
        { wire: "float16", mode: "allReduce" },
        { runtime: i === 0 ? gpuRuntime(device) : cpuRuntime(), dtype: "float16" },
      ),
    );
    const alone = openAlone("float16");
    for (let step = 0; step < 4; step++) {
      const tokens = tokensOf(14, step);
      await alone.step([tokens]);
      const shares = cut(tokens, [8, 6]);
      await Promise.all(ranks.map((rank, i) => rank.step([shares[i] as Uint32Array])));
    }
    const right = await alone.values();
    for (const rank of ranks) expect(distance(await rank.values(), right)).toBeLessThan(5e-3);
    const before = device.counters.snapshot();
    await Promise.all(
      ranks.map((rank, i) => rank.step([cut(tokensOf(14, 4), [8, 6])[i] as Uint32Array])),
    );
    expect(device.counters.since(before)).toMatchObject({
      ...{ exchangeWaits: 4, buffersCreated: 0, bindGroupsCreated: 0 },
    });
  });
});
