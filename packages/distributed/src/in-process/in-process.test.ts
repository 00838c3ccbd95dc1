import { describe, expect, it } from "vitest";
import { ExchangeError } from "../errors.js";
import { inProcess } from "./in-process.js";

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);

describe("ranks in one process", () => {
  it("exchange by rank, in every scope", async () => {
    const ranks = inProcess(4, { hosts: ["a", "b", "a", "b"] });
    const results = await Promise.all(
      ranks.map(async (carrier) => {
        const { rank, hosts } = carrier;
        const all = new Uint8Array(4);
        await carrier.allToAll(bytes(rank * 10, rank * 10 + 1, rank * 10 + 2, rank * 10 + 3), all);
        const host = new Uint8Array(2);
        await carrier.allGather(bytes(rank), host, { scope: "host" });
        const peers = new Uint8Array(2);
        await carrier.allGather(bytes(rank), peers, { scope: "peers" });
        const largest = Int32Array.of(rank, -rank);
        await carrier.max(largest);
        await carrier.close();
        return { all: [...all], host: [...host], peers: [...peers], largest: [...largest], hosts };
      }),
    );
    expect(results[3]).toEqual({
      all: [3, 13, 23, 33],
      host: [1, 3],
      peers: [2, 3],
      largest: [3, 0],
      hosts: { hostOf: [0, 1, 0, 1], count: 2, isEven: true, localRank: 1, localSize: 2 },
    });
    expect(results[0]?.peers).toEqual([0, 1]);
    expect(ranks[0]?.traffic).toMatchObject({ collectives: 5, bytes: 29, bytesAcrossHosts: 19 });
  });

  it("run collectives one at a time, in the order of the calls", async () => {
    const ranks = inProcess(2);
    const received = ranks.map(() => [new Uint8Array(2), new Uint8Array(2)] as const);
    const calls = ranks.flatMap((carrier, rank) =>
      [0, 1].map((call) =>
        carrier.allGather(bytes(10 * call + rank), received[rank]?.[call] as Uint8Array),
      ),
    );
    await Promise.all(calls);
    expect(received[0]).toEqual([bytes(0, 1), bytes(10, 11)]);
  });

  it("name the ranks that do not answer within the deadline, and stay failed", async () => {
    const [first] = inProcess(3, { deadline: 20 });
    const waiting = first?.allGather(bytes(1), new Uint8Array(3), { label: "bucket 2" });
    await expect(waiting).rejects.toThrow(
      "rank 0: allGather of bucket 2: no answer from rank 1, 2 within 20 ms",
    );
    await expect(first?.barrier()).rejects.toBeInstanceOf(ExchangeError);
    await first?.close();
  });

  it("refuse calls that differ, sizes that do not fit, and calls after the end", async () => {
    const [first, second] = inProcess(2);
    const calls = [
      first?.allGather(bytes(1), new Uint8Array(2), { label: "a" }),
      second?.allGather(bytes(1), new Uint8Array(2), { label: "b" }),
    ];
    for (const { status } of await Promise.allSettled(calls)) expect(status).toBe("rejected");
    await expect(calls[0]).rejects.toMatchObject({ failure: "mismatch" });
    const [alone] = inProcess(1);
    expect(() => alone?.allToAll(bytes(1), bytes(1, 2))).toThrow(RangeError);
    expect(() => alone?.allGather(bytes(1), bytes(1, 2))).toThrow(RangeError);
    await alone?.close();
    await expect(alone?.barrier()).rejects.toMatchObject({ failure: "closed" });
    expect(() => inProcess(2, { hosts: ["a"] })).toThrow(RangeError);
    expect(() => inProcess(3, { hosts: ["a", "a", "b"] })[0]?.members("peers")).toThrow(RangeError);
  });
});
