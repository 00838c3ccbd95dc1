import { requestTestDevice } from "@halfstep/device/testing";
import { GradScaler } from "@halfstep/grad-scaler";
import { FP16Optimizer, SGD } from "@halfstep/optim";
import { ampPrimitives, cpuRuntime, flatten, gpuRuntime, HostOpError } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { cutCarrier, open, type Rank, train } from "../../test/training-ranks.js";
import type { Carrier } from "../carrier.js";
import { ExchangeError } from "../errors.js";
import { inProcess } from "../in-process/in-process.js";
import type { Wire } from "../wire/wire.js";
import { agreedMode } from "./agreed-mode.js";
import { GradientExchange, type GradientExchangeOptions } from "./gradient-exchange.js";

const twoHosts = (size: number): readonly string[] =>
  Array.from({ length: size }, (_, rank) => `host ${rank % 2}`);

const options = (wire: Wire): GradientExchangeOptions => ({ wire, buckets: 3, leastBytes: 600 });

const skipsOf = async ({ scaler }: Rank) =>
  (await scaler.drain()).map(({ foundInf, scaleAfter }) => [foundInf, scaleAfter]);

describe("gradients of ranks", async () => {
  const steps = 50;
  /** The losses and scales of one rank that trains alone. */
  const alone = async (dtype: "float32" | "float16") => {
    const rank = open(inProcess(1)[0] as Carrier, {}, { dtype });
    return { losses: await train([rank], steps), scales: await skipsOf(rank) };
  };
  const expected = { float32: await alone("float32"), float16: await alone("float16") };

  test.each([
    ["float32", 2, "float32", 50, 1e-4],
    ["float32", 4, "float32", 12, 1e-4],
    ["float16", 2, "float16", 50, 5e-3],
    ["bfloat16", 4, "float32", 12, 5e-3],
    ["auto", 4, "float16", 12, 5e-3],
  ] as const)(
    "over %s, %d ranks, in %s, %d steps: the loss of one rank, and equal parameters",
    async (wire, size, dtype, count, limit) => {
      const { losses: right, scales } = expected[dtype];
      const carriers = inProcess(size, { hosts: twoHosts(size) });
      const ranks = carriers.map((carrier) => open(carrier, options(wire), { dtype }));
      const losses = await train(ranks, count);
      const worst = Math.max(
        ...losses.map((loss, i) => Math.abs(loss - (right[i] as number)) / (right[i] as number)),
      );
      expect(worst).toBeLessThan(limit);
      for (const rank of ranks) expect(await skipsOf(rank)).toEqual(scales.slice(0, count));
      // Two buckets of weights, and one of the rest.
      expect(ranks[0]?.runtime.lastPlan?.hostOps.length).toBe(3);
    },
  );

  // Two buckets of weights, and one of the rest. Two hosts send each other whole buckets; more of them chunks, then means.
  test.each([
    ["float32", ["a", "b"], 1],
    ["float16", ["a", "b"], 1],
    ["float16", ["a", "a", "b", "b"], 3],
    ["float16", ["a", "b", "c", "d"], 2],
  ] as const)(
    "over %s, on hosts %j: %d collectives a bucket, which carry the overflow flag",
    async (wire, hosts, collectives) => {
      const carriers = inProcess(hosts.length, { hosts });
      const ranks = carriers.map((carrier) => open(carrier, options(wire)));
      await Promise.all(ranks.map((rank) => rank.step(0)));
      for (const { traffic } of carriers) expect(traffic.collectives).toBe(3 * collectives);
    },
  );

  test.each(["float32", "float16"] as const)(
    "over %s: an infinity of one rank skips everywhere, a large number nowhere",
    async (wire) => {
      const carriers = inProcess(2, { hosts: ["a", "b"] });
      const ranks = carriers.map((carrier) =>
        open(carrier, options(wire), {
          dtype: "float32",
          rule: { initScale: 1, growthInterval: 2 },
        }),
      );
      await Promise.all(ranks.map((rank) => rank.step(0)));
      const before = await ranks[0]?.parameters();
      await Promise.all(
        ranks.map((rank, i) => rank.step(1, i === 1 ? Number.POSITIVE_INFINITY : 1)),
      );
      expect(await ranks[0]?.parameters()).toBe(before);
      // Gradients of about 1e6 pass 16 bits.
      await Promise.all(ranks.map((rank, i) => rank.step(2, i === 1 ? 2 ** 24 : 1)));
      expect(await ranks[0]?.parameters()).not.toBe(before);
      expect(await ranks[1]?.parameters()).toBe(await ranks[0]?.parameters());
      const skips = await Promise.all(ranks.map(skipsOf));
      expect(skips[0]?.map(([found]) => found)).toEqual([false, true, false]);
      expect(skips[1]).toEqual(skips[0]);
    },
  );

  test.each<[string, GradientExchangeOptions]>([
    ["float32", { wire: "float32" }],
    ["float16", { wire: "float16" }],
    ["shards", { wire: "float32", mode: "zero1" }],
    ["shards in float16", { wire: "float16", mode: "zero1" }],
    ["factors", { wire: "float32", compress: { powerSgd: { rank: 1 } } }],
  ])("of a rank without samples skip no step, over %s", async (_, exchange) => {
    const carriers = inProcess(2, { hosts: ["a", "b"] });
    const ranks = carriers.map((carrier) =>
      open(
        carrier,
        { ...options("float32"), ...exchange },
        { dtype: "float32", givesScale: exchange.compress !== undefined },
      ),
    );
    const before = await Promise.all(ranks.map((rank) => rank.parameters()));
    await Promise.all(
      ranks.map((rank, i) => rank.step(0, i === 1 ? Number.POSITIVE_INFINITY : 1, 1 - i)),
    );
    const [first, second] = await Promise.all(ranks.map((rank) => rank.parameters()));
    expect(first).not.toBe(before[0]);
    expect(second).toBe(first);
    for (const rank of ranks) expect(await skipsOf(rank)).toMatchObject([[false, 2 ** 12]]);
  });

  test("have weights from 0 on", async () => {
    const ranks = inProcess(2).map((carrier) => open(carrier, options("float32")));
    for (const weight of [-1, Number.NaN, Number.POSITIVE_INFINITY])
      for (const rank of ranks)
        await expect((async () => rank.step(0, 1, weight))()).rejects.toThrow(
          `weight is ${weight}: it must be a number from 0 on`,
        );
  });

  test("of one rank stop by its own signal", async () => {
    const [carrier] = inProcess(1) as [Carrier];
    const told = new AbortController();
    const exchange = new GradientExchange(carrier, { signal: told.signal });
    expect(exchange.signal.aborted).toBe(false);
    told.abort();
    expect(exchange.signal.aborted).toBe(true);
    expect(new GradientExchange(carrier).signal.aborted).toBe(false);
  });

  test.each(["float32", "float16"] as const)(
    "over %s: a signal of one rank ends all ranks after the same step",
    async (wire) => {
      const told = new AbortController();
      const ranks = inProcess(2, { hosts: ["a", "b"] }).map((carrier, i) =>
        open(carrier, { ...options(wire), ...(i === 1 && { signal: told.signal }) }),
      );
      const steps = [0, 0];
      const trainOn = async (rank: Rank, i: number): Promise<void> => {
        for (let number = 0; !rank.signal.aborted && number < 12; number++) {
          await rank.step(number);
          steps[i] = number + 1;
          if (i === 1 && number === 2) told.abort();
        }
      };
      await Promise.all(ranks.map(trainOn));
      // It is told within the fourth step, and four further ones may be recorded by then.
      expect(steps).toEqual([8, 8]);
    },
  );

  test("that cannot be exchanged leave parameters, moments, scale, counts and statistics as they are", async () => {
    for (const wire of ["float32", "float16"] as const) {
      const carriers = inProcess(2, { hosts: ["a", "b"] });
      let isCut = false;
      const failing = carriers.map((carrier) =>
        cutCarrier(carrier, (label) => isCut && !label.includes("bucket 1 of 2 of group 0")),
      );
      const ranks = failing.map((carrier) => open(carrier, options(wire)));
      for (const number of [0, 1]) await Promise.all(ranks.map((rank) => rank.step(number)));
      const before = await Promise.all(ranks.map((rank) => rank.state()));
      isCut = true;
      for (const [i, rank] of (
        await Promise.all(ranks.map((each) => each.step(2).catch((reason: unknown) => reason)))
      ).entries()) {
        expect(rank, `rank ${i}`).toBeInstanceOf(HostOpError);
        expect(rank).toMatchObject({ op: "exchange gradients" });
        expect((rank as Error).cause).toBeInstanceOf(ExchangeError);
      }
      expect(await Promise.all(ranks.map((rank) => rank.state()))).toEqual(before);
    }
  });

  test.each([
    ["allReduce", {}, { targetUnderflow: 0.01 }, "would choose different scales"],
    ["zero1", { mode: "zero1" }, { targetUnderflow: 0.01 }, "would choose different scales"],
    ["compressed", { compress: { powerSgd: { rank: 1 } } }, {}, "gradScale: scaler.gradScale()"],
  ] as const)(
    "of scales by which means would be wrong are refused: %s",
    async (_, exchange, rule, message) => {
      const ranks = inProcess(2).map((carrier) =>
        open(carrier, { ...options("float32"), ...exchange }, { dtype: "float16", rule }),
      );
      for (const rank of ranks) await expect((async () => rank.step(0))()).rejects.toThrow(message);
    },
  );

  test("are averaged for shards where adapters differ", async () => {
    const agreed = (names: readonly string[]) =>
      Promise.all(inProcess(2).map((carrier, i) => agreedMode(carrier, names[i] as string)));
    expect(await agreed(["a", "a"])).toEqual(["allReduce", "allReduce"]);
    expect(await agreed(["a", "b"])).toEqual(["zero1", "zero1"]);
  });

  test("on a GPU and on the CPU train together", async () => {
    const carriers = inProcess(2, { hosts: ["a", "b"] });
    const device = await requestTestDevice();
    const ranks = carriers.map((carrier, i) =>
      open(carrier, options("float16"), { runtime: i === 0 ? gpuRuntime(device) : cpuRuntime() }),
    );
    const losses: number[] = [];
    for (let number = 0; number < 6; number++) {
      const all = await Promise.all(ranks.map((rank) => rank.step(number)));
      losses.push(all.reduce((a, b) => a + b) / 2);
    }
    for (const [i, loss] of losses.entries()) {
      const right = expected.float16.losses[i] as number;
      expect(Math.abs(loss - right) / right).toBeLessThan(5e-3);
    }
    const before = device.counters.snapshot();
    await Promise.all(ranks.map((rank) => rank.step(6)));
    expect(device.counters.since(before)).toMatchObject({
      ...{ exchangeWaits: 3, buffersCreated: 0, bindGroupsCreated: 0 },
    });
  });
});

describe("parameters that ranks do not use in the same steps", () => {
  /** A rank with two heads of one size, in one group or in two, of which its step uses some. */
  const open = (carrier: Carrier, groups: 1 | 2, options: GradientExchangeOptions) => {
    const runtime = cpuRuntime();
    const heads = [1, 2].map((seed) =>
      runtime.variable(
        Float32Array.from({ length: 64 }, (_, i) => Math.sin(i + seed)),
        [8, 8],
        { requiresGrad: true, name: `head ${seed}` },
      ),
    );
    const exchange = new GradientExchange(carrier, options);
    const flat = groups === 1 ? [flatten(heads)] : heads.map((head) => flatten([head]));
    const params = exchange.shard(runtime, flat);
    const optimizer = new SGD(
      runtime.target,
      params.map((each) => ({ params: each })),
      { lr: 1 },
    );
    return {
      values: async () => (await Promise.all(heads.map((head) => head.toArray()))).map(String),
      async step(factors: readonly (number | undefined)[]): Promise<void> {
        await runtime.step(() => {
          const used = heads.flatMap((head, i) => {
            const factor = factors[i];
            return factor === undefined ? [] : [head.mul(factor).sum()];
          });
          for (const [i, each] of used.entries()) each.backward({ retainGraph: i === 0 });
          exchange.reduce(optimizer);
          optimizer.step();
          optimizer.zeroGrad();
        });
        await runtime.flush();
      },
    };
  };
  const ranks = (groups: 1 | 2, options: GradientExchangeOptions) =>
    inProcess(2, { hosts: ["a", "b"] }).map((carrier) => open(carrier, groups, options));
  const kinds: readonly GradientExchangeOptions[] = [
    { wire: "float32" },
    { wire: "float16" },
    { mode: "zero1", wire: "float32" },
    { wire: "float32", compress: { powerSgd: { rank: 1 } } },
  ];

  test.each(kinds.flatMap((kind) => [1, 2].map((groups) => [groups, kind] as const)))(
    "in %d groups, %j: gradients of different ones are an error on all ranks",
    async (groups, kind) => {
      const all = ranks(groups as 1 | 2, kind);
      const before = await Promise.all(all.map((rank) => rank.values()));
      const ends = await Promise.allSettled(
        all.map((rank, i) => rank.step(i === 0 ? [1, undefined] : [undefined, 1])),
      );
      for (const end of ends)
        expect(String((end as PromiseRejectedResult).reason)).toMatch(
          // Carriers within a process compare labels, too.
          /ranks average different things: .* Where a rank does not use a parameter p, add|this rank calls/,
        );
      expect(await Promise.all(all.map((rank) => rank.values()))).toEqual(before);
    },
  );

  test.each(kinds)("%j: a gradient of zeros counts as one", async (kind) => {
    const all = ranks(1, kind);
    const before = (await all[0]?.values()) as string[];
    await Promise.all(all.map((rank, i) => rank.step(i === 0 ? [2, 0] : [0, 4])));
    const numbers = (each: readonly string[]) =>
      each.flatMap((values) => values.split(",").map(Number));
    const right = numbers(before).map((value, i) => value - (i < 64 ? 1 : 2));
    for (const rank of all) {
      const worst = numbers(await rank.values()).map((value, i) => value - (right[i] as number));
      expect(Math.max(...worst.map(Math.abs))).toBeLessThan(1e-6);
    }
  });

  test("a step without any gradient is an error at once", async () => {
    const [rank] = ranks(1, {});
    await expect(rank?.step([])).rejects.toThrow(
      "reduce(): no parameter has a gradient: call it behind backward()",
    );
  });
});

describe("ranks that begin", () => {
  const open = (carrier: Carrier, mode: "allReduce" | "zero1") => {
    const runtime = cpuRuntime();
    const values = Float32Array.from({ length: 300 }, (_, i) => Math.sin(i * (carrier.rank + 1)));
    const weight = runtime.variable(values, [300], { requiresGrad: true, name: "weight" });
    const exchange = new GradientExchange(carrier, { mode, wire: "float32" });
    return { runtime, values, weight, exchange };
  };
  const ranksOf = (mode: "allReduce" | "zero1") =>
    inProcess(2, { hosts: ["a", "b"] }).map((carrier) => open(carrier, mode));

  test.each(["allReduce", "zero1"] as const)(
    "by %s: all get the values of rank 0",
    async (mode) => {
      const ranks = ranksOf(mode);
      await Promise.all(ranks.map(({ exchange, weight }) => exchange.begin([weight])));
      for (const { weight } of ranks) expect(await weight.toArray()).toEqual(ranks[0]?.values);
      await expect(ranks[0]?.exchange.begin([])).rejects.toThrow("pass model.parameters()");
    },
  );

  /** A rank with an optimizer for each of two groups, which one call of shard() has divided. */
  const withTwoOptimizers = (mode: "allReduce" | "zero1") => {
    const { runtime, weight, exchange } = open(inProcess(2)[0] as Carrier, mode);
    const other = runtime.variable(new Float32Array(300), [300], { requiresGrad: true });
    const groups = exchange.shard(runtime, [flatten([weight]), flatten([other])]);
    const optimizers = groups.map((group) => new SGD(runtime.target, group, { lr: 1 }));
    const scaler = new GradScaler(ampPrimitives(runtime));
    const recording = (calls: (all: typeof optimizers) => void) =>
      runtime.step(() => {
        scaler.scale(weight.mul(other).sum()).backward();
        calls(optimizers);
      });
    return { exchange, scaler, recording };
  };

  test.each(["allReduce", "zero1"] as const)(
    "by %s: gradients that are unscaled already are refused",
    async (mode) => {
      const { exchange, scaler, recording } = withTwoOptimizers(mode);
      const calls = recording((all) => {
        for (const each of all) scaler.unscale(each);
        exchange.reduce(all);
      });
      await expect(calls).rejects.toThrow("call reduce() before unscale(), behind backward()");
    },
  );

  test("by zero1: what is divided together is averaged together, once, and before the step", async () => {
    const { exchange, scaler, recording } = withTwoOptimizers("zero1");
    const [first] = await Promise.allSettled([recording(([a]) => a && exchange.reduce(a))]);
    expect(String((first as PromiseRejectedResult).reason)).toContain("all of its optimizers");
    const later = recording((all) => scaler.step(all));
    await expect(later).rejects.toThrow("call reduce() of the exchange before the step");
    const twice = recording((all) => {
      exchange.reduce(all);
      exchange.reduce(all);
    });
    await expect(twice).rejects.toThrow("call reduce() once a step");
  });
});

test.each([
  ["allReduce", 1],
  ["allReduce", 2],
  ["zero1", 2],
] as const)("by %s, %d ranks: FP16Optimizer steps masters by the means", async (mode, size) => {
  const found = await Promise.all(
    inProcess(size, { hosts: ["a", "b"].slice(0, size) }).map(async (carrier) => {
      const runtime = cpuRuntime();
      const weight = runtime.variable(new Float32Array(300).fill(1), [300], {
        ...{ requiresGrad: true, dtype: "float16", name: "weight" },
      });
      const exchange = new GradientExchange(carrier, { mode, wire: "float32" });
      const params = exchange.shard(runtime, [flatten([weight])]).map((each) => ({ params: each }));
      const inner = new SGD(runtime.target, params, { lr: 2 ** -14 });
      const optimizer = new FP16Optimizer(inner, { staticLossScale: 128, verbose: false });
      for (let step = 0; step < 8; step++)
        await runtime.step(() => {
          // Both means are 1.
          optimizer.backward(weight.mul(size === 1 ? 1 : carrier.rank * 2).sum());
          exchange.reduce(optimizer);
          optimizer.step();
          optimizer.zeroGrad();
        });
      return [...(await weight.toArray())];
    }),
  );
  // A step is an eighth of a unit in the last place of float16 below 1: only masters add them up.
  for (const weights of found) expect(new Set(weights)).toEqual(new Set([1 - 2 ** -11]));
});

test("options and arguments that mean nothing are refused", () => {
  const carrier = inProcess(2)[0] as Carrier;
  const make =
    (options: object, own = carrier) =>
    () =>
      new GradientExchange(own, options);
  expect(make({ mode: "auto" })).toThrow('mode is "auto": it must be "allReduce", "zero1"');
  expect(make({ wire: "fp16" })).toThrow('wire is "fp16": it must be "float32", "float16",');
  expect(make({ powerSgd: { rank: 4 } })).toThrow("there is no option powerSgd; pass any of wire,");
  for (const compress of [true, {}, { powerSGD: { rank: 4 } }])
    expect(make({ compress })).toThrow("pass { powerSgd: { rank } }");
  expect(make({}, null as never)).toThrow("the carrier is null: pass what await init()");
  const { reduce } = new GradientExchange(carrier);
  for (const wrong of [undefined, null, "x", {}, [], [{}]])
    expect(() => reduce.call(new GradientExchange(carrier), wrong as never)).toThrow(
      "reduce(optimizers): pass an optimizer of @halfstep/optim, or several",
    );
});
