import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { AdamW } from "@halfstep/optim";
import {
  cpuRunner,
  cpuRuntime,
  type FlatVariables,
  flatten,
  gpuRuntime,
  HostOpError,
  linear,
  type Runner,
  runtime as runtimeOn,
} from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { cutCarrier, open, type Rank, type SavedRank, train } from "../../test/training-ranks.js";
import type { Carrier } from "../carrier.js";
import { ExchangeError } from "../errors.js";
import { GradientExchange, type GradientExchangeOptions } from "../gradients/gradient-exchange.js";
import { inProcess } from "../in-process/in-process.js";
import type { Wire } from "../wire/wire.js";

const options = (wire: Wire): GradientExchangeOptions => ({
  ...{ mode: "zero1", wire },
  ...{ buckets: 3, leastBytes: 600 },
});

const carriersOf = (size: number): readonly Carrier[] =>
  inProcess(size, { hosts: Array.from({ length: size }, (_, rank) => `host ${rank % 2}`) });

/** A runtime, and the bytes that it has allocated. */
function countedRuntime() {
  let allocated = 0;
  const runner = cpuRunner();
  const counting: Runner = {
    ...runner,
    allocate(bytes) {
      allocated += bytes;
      return runner.allocate(bytes);
    },
  };
  return { runtime: runtimeOn(counting), bytes: () => allocated };
}

const skipsOf = async ({ scaler }: Rank) =>
  (await scaler.drain()).map(({ foundInf, scaleAfter }) => [foundInf, scaleAfter]);

describe("ranks with shards of the optimizer", async () => {
  const steps = 12;
  const alone = async (dtype: "float32" | "float16", clip?: number) => {
    const rank = open(inProcess(1)[0] as Carrier, {}, { dtype, ...(clip && { clip }) });
    return { losses: await train([rank], steps), scales: await skipsOf(rank) };
  };

  test.each([
    ["float32", 2, "float32", undefined, 1e-4],
    ["float32", 4, "float32", 0.05, 1e-4],
    ["float16", 2, "float16", 0.05, 5e-3],
    ["auto", 4, "float16", undefined, 5e-3],
  ] as const)(
    "over %s, %d ranks, in %s, clipped at %s: the loss of one rank, and equal parameters",
    async (wire, size, dtype, clip, limit) => {
      const right = await alone(dtype, clip);
      const ranks = carriersOf(size).map((carrier) =>
        open(carrier, options(wire), { dtype, ...(clip && { clip }) }),
      );
      const losses = await train(ranks, steps);
      const worst = Math.max(
        ...losses.map((loss, i) => Math.abs(loss / (right.losses[i] as number) - 1)),
      );
      expect(worst).toBeLessThan(limit);
      for (const rank of ranks) expect(await skipsOf(rank)).toEqual(right.scales);
    },
  );

  test("on a GPU and on the CPU have equal parameters after every step", async () => {
    const device = await requestTestDevice();
    const ranks = carriersOf(2).map((carrier, i) =>
      open(carrier, options("float16"), { runtime: i === 0 ? gpuRuntime(device) : cpuRuntime() }),
    );
    for (let number = 0; number < 5; number++) {
      await Promise.all(ranks.map((rank) => rank.step(number)));
      // What forward passes read, and then the float32 numbers of their owners.
      expect(await ranks[1]?.rounded()).toBe(await ranks[0]?.rounded());
      if (number % 2 === 0) continue;
      const [a, b] = await Promise.all(ranks.map((rank) => rank.parameters()));
      expect(b).toBe(a);
    }
    const before = device.counters.snapshot();
    await Promise.all(ranks.map((rank) => rank.step(6)));
    // Three stripes of weights, one of the rest, and two groups of parameters.
    expect(device.counters.since(before)).toMatchObject({
      ...{ exchangeWaits: 6, buffersCreated: 0, bindGroupsCreated: 0 },
    });
  });

  test("send as many bytes as ranks without shards", async () => {
    const bytesOf = async (mode: "allReduce" | "zero1"): Promise<number> => {
      const carriers = carriersOf(2);
      const setting = { mode, wire: "float16", buckets: 3, leastBytes: 2048 } as const;
      const ranks = carriers.map((carrier) => open(carrier, setting, { width: 128 }));
      await Promise.all(ranks.map((rank) => rank.step(0)));
      const states = await Promise.all(ranks.map((rank) => rank.rounded()));
      expect(states[1]).toBe(states[0]);
      return Math.max(...carriers.map(({ traffic }) => traffic.bytes));
    };
    // Biases travel in float32, and norms are exchanged.
    expect(await bytesOf("zero1")).toBeLessThan(1.03 * (await bytesOf("allReduce")));
  });

  test.each(["float32", "float16"] as const)(
    "over %s: an infinity of one rank skips everywhere, a large number nowhere",
    async (wire) => {
      const rule = { initScale: 1, growthInterval: 2 };
      const ranks = carriersOf(2).map((carrier) =>
        open(carrier, options(wire), { dtype: "float32", rule }),
      );
      const all = (number: number, factor: number): Promise<unknown> =>
        Promise.all(ranks.map((rank, i) => rank.step(number, i === 1 ? factor : 1)));
      const parameters = () => Promise.all(ranks.map((rank) => rank.parameters()));
      await all(0, 1);
      const before = await parameters();
      await all(1, Number.POSITIVE_INFINITY);
      expect(await parameters()).toEqual(before);
      await all(2, 2 ** 24);
      const [a, b] = await parameters();
      expect(a).not.toBe(before[0]);
      expect(b).toBe(a);
      const skips = await Promise.all(ranks.map(skipsOf));
      expect(skips[0]?.map(([found]) => found)).toEqual([false, true, false]);
      expect(skips[1]).toEqual(skips[0]);
    },
  );

  test("save together what loads into any number of ranks, with or without shards", async () => {
    const ranks = carriersOf(2).map((carrier) => open(carrier, options("float32")));
    await train(ranks, 3);
    const [saved, other] = await Promise.all(ranks.map((rank) => rank.save()));
    expect(other).toEqual(saved);
    const goOn = async (others: readonly Rank[]): Promise<readonly string[]> => {
      for (const number of [3, 4]) await Promise.all(others.map((rank) => rank.step(number)));
      return Promise.all(others.map((rank) => rank.parameters()));
    };
    const loaded = async (size: number, mode: "allReduce" | "zero1"): Promise<readonly Rank[]> => {
      const made = carriersOf(size).map((carrier) =>
        open(carrier, { ...options("float32"), mode }),
      );
      await Promise.all(made.map((rank) => rank.load(saved as SavedRank)));
      return made;
    };
    const right = await goOn(ranks);
    expect(await goOn(await loaded(2, "zero1"))).toEqual(right);
    expect(await goOn(await loaded(2, "allReduce"))).toEqual(right);
    for (const size of [1, 4]) {
      const made = await loaded(size, "zero1");
      // The same state, of which each rank has another part.
      expect((await Promise.all(made.map((rank) => rank.save())))[0]).toEqual(saved);
      const hashes = await goOn(made);
      expect(new Set(hashes).size).toBe(1);
    }
  });

  test.each([
    [2, "float32"],
    [4, "float16"],
  ] as const)("of %d keep 1 / P of the state, in %s", (size, dtype) => {
    const bytesOf = (carrier: Carrier, mode: "allReduce" | "zero1"): number => {
      const { bytes, runtime } = countedRuntime();
      const weights = runtime.variable(new Float32Array(2 ** 20), [1024, 1024], { dtype });
      const bias = runtime.variable(new Float32Array(100), [100], { dtype });
      const groups = [flatten([weights]), flatten([bias])];
      const exchange = new GradientExchange(carrier, { mode });
      const before = bytes();
      const own = exchange.shard(runtime, groups);
      new AdamW(
        runtime.target,
        own.map((params) => ({ params })),
        {},
      );
      return bytes() - before;
    };
    const carriers = carriersOf(size);
    const whole = bytesOf(carriers[0] as Carrier, "allReduce");
    for (const carrier of carriers)
      expect(bytesOf(carrier, "zero1") / whole).toBeLessThan(1 / size + 0.05);
  });

  test("that cannot exchange gradients keep their state; that cannot gather parameters end", async () => {
    for (const [cut, op] of [
      ["stripe 2", "average gradients"],
      ["norms", "average gradients"],
      ["parameters of group 1", "gather parameters"],
    ] as const) {
      let isCut = false;
      const ranks = carriersOf(2).map((carrier) =>
        open(
          cutCarrier(carrier, (label) => isCut && label.includes(cut)),
          options("float16"),
        ),
      );
      const states = () => Promise.all(ranks.map((rank) => rank.state()));
      await Promise.all(ranks.map((rank) => rank.step(0)));
      const before = await states();
      isCut = true;
      const failures = await Promise.all(
        ranks.map((rank) => rank.step(1).catch((reason: unknown) => reason)),
      );
      for (const failure of failures) {
        expect(failure).toBeInstanceOf(HostOpError);
        expect(failure).toMatchObject({ op });
        expect((failure as Error).cause).toBeInstanceOf(ExchangeError);
        expect((failure as Error).message).toContain(cut);
        expect((failure as Error).message).toContain(
          op === "gather parameters" ? "has changed parameters" : "changed no parameter",
        );
      }
      if (op === "average gradients") expect(await states()).toEqual(before);
    }
  });

  test("read parameters in other formats than before only after complete()", async () => {
    const ranks = carriersOf(2).map((carrier) => {
      const runtime = cpuRuntime();
      const values = Float32Array.from({ length: 256 }, (_, i) => Math.sin(i));
      const weight = runtime.variable(values, [16, 16], { requiresGrad: true });
      const exchange = new GradientExchange(carrier, options("float32"));
      const [params] = exchange.shard(runtime, [flatten([weight])]) as [FlatVariables];
      const optimizer = new AdamW(runtime.target, params, { lr: 0.01 });
      const x = Float32Array.from({ length: 64 }, (_, i) => Math.cos(i + carrier.rank));
      return {
        exchange,
        weight,
        step: (dtype: "float16" | "bfloat16" | "float32") =>
          runtime.step(() => {
            const loss = () =>
              linear(runtime.tensor(x, [4, 16]), weight)
                .square()
                .sum();
            (dtype === "float32" ? loss() : autocast({ dtype }, loss)).backward();
            exchange.reduce(optimizer);
            optimizer.step();
            optimizer.zeroGrad();
          }),
      };
    });
    const all = (dtype: "float16" | "bfloat16" | "float32") =>
      Promise.allSettled(ranks.map((rank) => rank.step(dtype)));
    const ends = async (dtype: "float16" | "bfloat16" | "float32") =>
      (await all(dtype)).map((end) => (end.status === "rejected" ? String(end.reason) : "done"));
    await all("float16");
    expect(await ends("float16")).toEqual(["done", "done"]);
    for (const end of await ends("float32")) expect(end).toContain("call await complete()");
    await Promise.all(ranks.map(({ exchange }) => exchange.complete()));
    // From now on all read the numbers of their owners.
    for (const dtype of ["float32", "float16", "bfloat16"] as const) {
      expect(await ends(dtype)).toEqual(["done", "done"]);
      const [a, b] = await Promise.all(ranks.map(({ weight }) => weight.toArray()));
      expect(b).toEqual(a);
    }
  });
});
