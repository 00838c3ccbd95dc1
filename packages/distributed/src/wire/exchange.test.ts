import { bfloat16, decodeArray, encodeArray, float16 } from "@halfstep/formats";
import { philox4x32 } from "@halfstep/formats/philox";
import { describe, expect, it } from "vitest";
import { cutCarrier } from "../../test/training-ranks.js";
import type { Carrier } from "../carrier.js";
import { ExchangeError } from "../errors.js";
import { inProcess } from "../in-process/in-process.js";
import { Exchange, type ExchangeOptions } from "./exchange.js";

/** Numbers of many magnitudes, different for each rank. */
const numbersOf = (rank: number, length: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => {
    const [a = 0, b = 0] = philox4x32([i, rank, 0, 0], [7, 0]);
    return (a / 2 ** 32 - 0.5) * 2 ** -(b % 12);
  });

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** The means on all ranks of what `valuesOf` gives. */
const meansOf = (
  ranks: readonly Carrier[],
  valuesOf: (rank: number) => Float32Array,
  { weights, ...options }: ExchangeOptions & { readonly weights?: readonly number[] } = {},
): Promise<Float32Array[]> =>
  Promise.all(
    ranks.map(async (carrier) => {
      const values = valuesOf(carrier.rank);
      await new Exchange(carrier, options).mean(values, { weight: weights?.[carrier.rank] });
      return values;
    }),
  );

const twoByTwo = ["a", "a", "b", "b"];
const steps = { float32: 2 ** -23, float16: 2 ** -11, bfloat16: 2 ** -8 };

describe("means over ranks", () => {
  for (const wire of ["float32", "float16", "bfloat16"] as const)
    for (const hosts of [["a"], ["a", "b"], ["a", "a", "b"], twoByTwo])
      it(`are the same bits on hosts ${hosts.join("")}, over ${wire}`, async () => {
        for (const length of [1, 13, 1000]) {
          const ranks = inProcess(hosts.length, { hosts });
          const means = await meansOf(ranks, (rank) => numbersOf(rank, length), { wire });
          for (const mean of means) expect(mean).toEqual(means[0]);
          const inputs = ranks.map(({ rank }) => numbersOf(rank, length));
          // Each number is rounded when it is sent, the partial mean of a host, and the mean.
          const worst = Math.max(
            ...(means[0] as Float32Array).map((mean, i) => {
              const values = inputs.map((input) => input[i] as number);
              const magnitude = Math.max(...values.map(Math.abs), 2 ** -15);
              return Math.abs(mean - sumOf(values) / hosts.length) / magnitude;
            }),
          );
          expect(worst).toBeLessThanOrEqual(2 * steps[wire]);
        }
      });

  it("of two ranks are those of what they send, with one rounding", async () => {
    const inputs = [numbersOf(0, 1000), numbersOf(1, 1000).map((value) => value * 3)];
    const shifts = inputs.map(
      (values) => 14 - Math.floor(Math.log2(Math.max(...values.map(Math.abs)))),
    );
    const common = Math.min(...shifts);
    const rounded = (values: Float32Array): Float32Array =>
      decodeArray(encodeArray(values, float16), float16);
    const sent = inputs.map((values, rank) => {
      const shift = shifts[rank] as number;
      return rounded(values.map((value) => value * 2 ** shift)).map(
        (value) => value * 2 ** (common - shift),
      );
    });
    const [first, second] = sent as [Float32Array, Float32Array];
    const sums = first.map((value, i) => value + (second[i] as number));
    const expected = rounded(sums.map((sum) => sum / 2)).map((mean) => mean * 2 ** -common);
    const ranks = inProcess(2, { hosts: ["a", "b"] });
    const means = await meansOf(ranks, (rank) => Float32Array.from(inputs[rank] ?? []), {
      wire: "float16",
    });
    expect(means).toEqual([expected, expected]);
    expect(ranks.map(({ traffic }) => traffic.collectives)).toEqual([1, 1]);
  });

  it("of a long bucket have the bits of its parts, which two ranks send each other whole", async () => {
    const length = 2 ** 19 + 8;
    const ranks = inProcess(2, { hosts: ["a", "b"] });
    const parts = [0, 2 ** 18, length];
    const found = await Promise.all(
      ranks.map(async (carrier) => {
        const exchange = new Exchange(carrier, { wire: "float16" });
        const codes = new Uint16Array(length).map(
          (_, i) => 0x3800 + ((i * 7) % (1000 + carrier.rank)),
        );
        const ofParts = codes.slice();
        await exchange.meanOfCodes(codes, 0);
        for (const [i, end] of parts.slice(1).entries())
          await exchange.meanOfCodes(ofParts.subarray(parts[i], end), 0);
        return [Buffer.from(codes.buffer), Buffer.from(ofParts.buffer)] as const;
      }),
    );
    for (const buffers of found)
      for (const each of buffers) expect(each.equals(found[0]?.[0] as Buffer)).toBe(true);
    expect(ranks.map(({ traffic }) => traffic.collectives)).toEqual([4, 4]);
  });

  for (const hosts of [["a", "b"], twoByTwo])
    it(`of own chunks stay, or are written to a place, on hosts ${hosts.join("")}`, async () => {
      const length = 1000;
      const found = await Promise.all(
        inProcess(hosts.length, { hosts }).map(async (carrier) => {
          const exchange = new Exchange(carrier, { wire: "float32" });
          const chunk = exchange.chunkOf({ offset: 0, length }, carrier.rank);
          const ofOnes = new Float32Array(length).fill(1);
          const first = await exchange.ownMean(ofOnes);
          const out = new Float32Array(chunk.length + 3).fill(9);
          const second = await exchange.ownMean(new Float32Array(length).fill(2), { out });
          const short = new Float32Array(Math.max(0, chunk.length - 1));
          const refused = await exchange.ownMean(ofOnes, { out: short }).catch(String);
          return { chunk, first, out, second, refused };
        }),
      );
      for (const { chunk, first, out, second, refused } of found) {
        expect(first).toEqual(new Float32Array(chunk.length).fill(1));
        expect(second).toEqual(new Float32Array(chunk.length).fill(2));
        expect(second.buffer).toBe(out.buffer);
        expect([...out.subarray(chunk.length)]).toEqual([9, 9, 9]);
        expect(refused).toMatch(/RangeError: out has \d+ elements: the chunk of this rank has/);
      }
    });

  it("round once: exact where the numbers of all ranks are of the wire's format", async () => {
    const valuesOf = (rank: number): Float32Array =>
      Float32Array.from({ length: 64 }, (_, i) => (rank === 0 ? 1 : 2 ** -11) * (i + 1));
    const [mean] = await meansOf(inProcess(2, { hosts: ["a", "b"] }), valuesOf, {
      wire: "float16",
    });
    const exact = Float32Array.from({ length: 64 }, (_, i) => ((1 + 2 ** -11) * (i + 1)) / 2);
    expect(mean).toEqual(decodeArray(encodeArray(exact, float16), float16));
  });

  it("keep small numbers where a rank of weight 0 has large ones", async () => {
    for (const hosts of [["a", "b", "c"], twoByTwo]) {
      const weights = hosts.map((_, rank) => (rank === hosts.length - 1 ? 0 : 1));
      const valuesOf = (rank: number): Float32Array =>
        Float32Array.of(weights[rank] === 0 ? 2 ** 60 : 1, 2 ** -10);
      const ranks = inProcess(hosts.length, { hosts });
      const means = await meansOf(ranks, valuesOf, { wire: "float16", weights });
      for (const mean of means) expect([...mean]).toEqual([1, 2 ** -10]);
    }
  });

  it("may be none", async () => {
    for (const hosts of [["a"], ["a", "b"], twoByTwo])
      for (const wire of ["float32", "float16"] as const) {
        const ranks = inProcess(hosts.length, { hosts });
        const means = await meansOf(ranks, () => new Float32Array(), { wire });
        for (const mean of means) expect(mean).toHaveLength(0);
      }
  });

  it("weigh ranks by their samples, and leave out ranks without any", async () => {
    const valuesOf = (rank: number): Float32Array =>
      Float32Array.of([1, 4, Number.NaN][rank] as number);
    const means = await meansOf(inProcess(3), valuesOf, { weights: [2, 1, 0] });
    expect(means).toEqual([Float32Array.of(2), Float32Array.of(2), Float32Array.of(2)]);
  });

  it("stay finite beyond the range of float16, and carry an infinity or NaN to all ranks", async () => {
    const hosts = ["a", "b"];
    for (const wire of ["float16", "bfloat16"] as const) {
      const large = await meansOf(
        inProcess(2, { hosts }),
        () => Float32Array.of(1e6, 3.3e38, 1e-3),
        { wire },
      );
      for (const mean of large) expect(mean.every(Number.isFinite)).toBe(true);
      const small = await meansOf(inProcess(2, { hosts }), () => Float32Array.of(2 ** -140, 0), {
        wire,
      });
      for (const mean of small) expect([...mean]).toEqual([2 ** -140, 0]);
      for (const bad of [Number.POSITIVE_INFINITY, Number.NaN]) {
        const valuesOf = (rank: number): Float32Array => Float32Array.of(1, rank === 1 ? bad : 1);
        for (const mean of await meansOf(inProcess(2, { hosts }), valuesOf, { wire }))
          expect([...mean]).toEqual([1, bad]);
      }
    }
  });

  it("do not depend on predivide where it is a power of two", async () => {
    const ask = (predivide: number): Promise<Float32Array[]> =>
      meansOf(inProcess(2, { hosts: ["a", "b"] }), (rank) => numbersOf(rank, 100), { predivide });
    expect(await ask(8)).toEqual(await ask(1));
    expect(() => new Exchange(inProcess(1)[0] as Carrier, { predivide: 0 })).toThrow(RangeError);
  });

  it("of codes are those of the numbers", async () => {
    const ranks = inProcess(2, { hosts: ["a", "b"] });
    const shifted = await Promise.all(
      ranks.map(async (carrier) => {
        const shift = 10 + carrier.rank;
        const scaled = numbersOf(carrier.rank, 50).map((value) => value * 2 ** shift);
        const codes = encodeArray(scaled, float16);
        const common = await new Exchange(carrier).meanOfCodes(codes, shift);
        return decodeArray(codes, float16).map((value) => value / 2 ** common);
      }),
    );
    expect(shifted[1]).toEqual(shifted[0]);
    const [mean] = await meansOf(inProcess(2), (rank) => numbersOf(rank, 50));
    for (const [i, value] of (mean as Float32Array).entries())
      expect(Math.abs((shifted[0]?.[i] as number) - value)).toBeLessThanOrEqual(2 ** -12);
    const alone = new Exchange(inProcess(1)[0] as Carrier, { wire: "float32" });
    expect(() => alone.meanOfCodes(new Uint16Array(1), 0)).toThrow(TypeError);
  });

  it("of codes, which hold numbers as they are, are those of any predivide", async () => {
    for (const wire of ["float16", "bfloat16"] as const) {
      const found = await Promise.all(
        inProcess(2, { hosts: ["a", "b"] }).map(async (carrier) => {
          const exchange = new Exchange(carrier, { wire, predivide: 8 });
          const ones = encodeArray(new Float32Array(300).fill(1), { float16, bfloat16 }[wire]);
          const own = await exchange.ownMeanOfCodes(ones, 0);
          const common = await exchange.meanOfCodes(ones, 0);
          return {
            own: new Set(own),
            ones: decodeArray(ones, { float16, bfloat16 }[wire]),
            common,
          };
        }),
      );
      for (const { own, ones, common } of found) {
        expect(own).toEqual(new Set([1]));
        expect(new Set(ones.map((value) => value / 2 ** common))).toEqual(new Set([1]));
      }
    }
  });

  it("fail on all ranks where their options or lengths differ", async () => {
    const options: readonly (readonly ExchangeOptions[])[] = [
      [{ wire: "float16" }, { wire: "bfloat16" }],
      [{ predivide: 2 }, {}],
    ];
    for (const each of options) {
      const failures = await Promise.allSettled(
        inProcess(2, { hosts: ["a", "b"] }).map((carrier) =>
          new Exchange(carrier, each[carrier.rank]).mean(numbersOf(0, 10)),
        ),
      );
      for (const { status } of failures) expect(status).toBe("rejected");
    }
    // Both are 16 bytes in chunks of two ranks: MPI would see no difference.
    const lengths = await Promise.allSettled(
      inProcess(2, { hosts: ["a", "b"] }).map((carrier) =>
        new Exchange(carrier).mean(numbersOf(0, 2 + carrier.rank)),
      ),
    );
    for (const { status } of lengths) expect(status).toBe("rejected");
  });

  it("refuse what is no list of numbers, and weights that are none", async () => {
    const exchange = new Exchange(inProcess(1)[0] as Carrier);
    await expect(exchange.mean([1, 2] as never)).rejects.toThrow("pass a Float32Array");
    for (const weight of [-1, Number.NaN, "3"])
      await expect(
        exchange.mean(new Float32Array(1), { weight: weight as number }),
      ).rejects.toThrow(/weight is .*: it must be a number from 0 on/);
    const make = (options: object) => () => new Exchange(exchange.carrier, options);
    expect(make({ wier: "float16" })).toThrow("there is no option wier; pass any of wire,");
  });

  it("fail on all ranks where they average different contents", async () => {
    for (const hosts of [
      ["a", "b"],
      ["a", "b", "c"],
    ]) {
      const failures = await Promise.all(
        inProcess(hosts.length, { hosts }).map((carrier) =>
          new Exchange(carrier)
            .mean(numbersOf(0, 10), { contents: carrier.rank === 1 ? 5 : 4, label: "bucket 1" })
            .catch((error: unknown) => error),
        ),
      );
      for (const failure of failures) expect(failure).toMatchObject({ failure: "mismatch" });
      expect(String(failures[0])).toContain("rank 0: bucket 1: ranks average different things");
    }
  });

  it("carry flags: all ranks get those that any rank has set", async () => {
    for (const hosts of [["a"], ["a", "b"], ["a", "a", "b"], twoByTwo])
      for (const wire of ["float32", "float16"] as const)
        for (const length of [0, 1, 1000]) {
          const found = await Promise.all(
            inProcess(hosts.length, { hosts }).map(async (carrier) => {
              const exchange = new Exchange(carrier, { wire });
              const flags = Int32Array.of(2 ** carrier.rank);
              // Memory of this exchange is used again, in which flags must not stay.
              const later = Int32Array.of(carrier.rank === 1 ? 4 : 0);
              await exchange.mean(numbersOf(carrier.rank, length), { flags });
              await exchange.mean(numbersOf(carrier.rank, length), { flags: later });
              return [flags[0], later[0]];
            }),
          );
          for (const each of found) expect(each).toEqual([2 ** hosts.length - 1, hosts[1] ? 4 : 0]);
        }
  });

  describe("of more numbers than travel at once", () => {
    // Two ranks exchange 2^22 numbers at once.
    const [whole, rest] = [2 ** 22, 1003];
    /** Numbers that repeat, because drawing each takes longer than the exchange. */
    const repeated = <T extends Float32Array | Uint16Array>(out: T, period: number): T => {
      for (let at = period; at < out.length; at *= 2) out.copyWithin(at, 0, at);
      return out;
    };
    const valuesOf = (rank: number): Float32Array => {
      const values = new Float32Array(whole + rest);
      values.set(numbersOf(rank, 1009));
      return repeated(values, 1009);
    };
    const codesOf = (rank: number): Uint16Array => {
      const codes = new Uint16Array(whole + rest);
      codes.set(encodeArray(numbersOf(rank, 1009), float16));
      return repeated(codes, 1009);
    };
    const both = <T>(run: (carrier: Carrier) => Promise<T>, ranks = inProcess(2)): Promise<T[]> =>
      Promise.all(ranks.map(run));

    it("have the bits of those of each part", async () => {
      const meansBy = (lengths: readonly number[]) =>
        both(async (carrier) => {
          const [values, codes] = [valuesOf(carrier.rank), codesOf(carrier.rank)];
          let offset = 0;
          for (const length of lengths) {
            const [from, to] = [offset, offset + length];
            offset = to;
            const flags = Int32Array.of(2 ** carrier.rank);
            await new Exchange(carrier, { wire: "float32" }).mean(values.subarray(from, to), {
              flags,
            });
            expect(flags[0]).toBe(3);
            const exchange = new Exchange(carrier, { wire: "float16" });
            await exchange.meanOfCodes(codes.subarray(from, to), 0, { weight: 1 + carrier.rank });
          }
          return [Buffer.from(values.buffer), Buffer.from(codes.buffer)] as const;
        });
      const [[values, codes], other] = (await meansBy([whole + rest])) as [
        readonly [Buffer, Buffer],
        readonly [Buffer, Buffer],
      ];
      expect(other[0].equals(values) && other[1].equals(codes)).toBe(true);
      const [parts] = (await meansBy([whole, rest])) as [readonly [Buffer, Buffer]];
      expect(parts[0].equals(values) && parts[1].equals(codes)).toBe(true);
    });

    it("travel while means are computed, in an order that all ranks have", async () => {
      const calls = await both(async (carrier) => {
        const names: string[] = [];
        const noting: Carrier = Object.create(carrier, {
          allToAll: {
            value: (...args: Parameters<Carrier["allToAll"]>) => {
              names.push("chunks");
              return carrier.allToAll(...args);
            },
          },
          allGather: {
            value: (...args: Parameters<Carrier["allGather"]>) => {
              names.push("means");
              return carrier.allGather(...args);
            },
          },
        });
        await new Exchange(noting, { wire: "float32" }).mean(new Float32Array(2 * whole + rest));
        return names;
      });
      expect(calls[0]).toEqual(["chunks", "chunks", "means", "chunks", "means", "means"]);
      expect(calls[1]).toEqual(calls[0]);
    });

    it("keep their values where an exchange fails", async () => {
      const found = await both(async (carrier) => {
        let count = 0;
        const isCut = (): boolean => ++count > 3;
        const values = valuesOf(carrier.rank);
        const exchange = new Exchange(cutCarrier(carrier, isCut), { wire: "float32" });
        await expect(exchange.mean(values)).rejects.toThrow(ExchangeError);
        return values;
      });
      for (const [rank, values] of found.entries())
        expect(Buffer.from(values.buffer).equals(Buffer.from(valuesOf(rank).buffer))).toBe(true);
    });
  });
});

describe("bytes", () => {
  const bytes = async (
    hosts: readonly string[],
    options: ExchangeOptions,
  ): Promise<{ all: number; across: number }> => {
    const ranks = inProcess(hosts.length, { hosts });
    await meansOf(ranks, (rank) => numbersOf(rank, 64_000), options);
    return {
      all: sumOf(ranks.map(({ traffic }) => traffic.bytes)),
      across: sumOf(ranks.map(({ traffic }) => traffic.bytesAcrossHosts)),
    };
  };

  it("across hosts are halved by a 16-bit wire, and sent once for each host", async () => {
    for (const hosts of [["a", "b"], ["a", "b", "c", "d"], twoByTwo]) {
      const half = await bytes(hosts, { wire: "float16" });
      const whole = await bytes(hosts, { wire: "float32" });
      expect(half.across / whole.across).toBeLessThanOrEqual(0.51);
      expect((await bytes(hosts, {})).across).toBe(half.across);
      expect((await bytes(hosts, { alwaysFloat32: true })).across).toBe(whole.across);
    }
    const one = await bytes(["a", "b"], { wire: "float16" });
    expect((await bytes(twoByTwo, { wire: "float16" })).across).toBeLessThan(1.01 * one.across);
    expect(await bytes(["a", "a"], {})).toMatchObject({ across: 0 });
  });
});
