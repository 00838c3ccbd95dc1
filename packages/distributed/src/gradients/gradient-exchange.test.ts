import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { GradScaler, type GradScalerOptions } from "@halfstep/grad-scaler";
import { AdamW } from "@halfstep/optim";
import {
  ampPrimitives,
  batchNorm,
  cpuRuntime,
  crossEntropy,
  flatten,
  gpuRuntime,
  HostOpError,
  linear,
  type Runtime,
  relu,
  type Tensor,
} from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import type { Carrier } from "../carrier.js";
import { ExchangeError } from "../errors.js";
import { inProcess } from "../in-process/in-process.js";
import type { Wire } from "../wire/wire.js";
import { GradientExchange, type GradientExchangeOptions } from "./gradient-exchange.js";

// Ranks are runtimes in one process: an MLP with running statistics, weights in one group and the rest in another.

const globalBatch = 16;
const features = 16;
const width = 16;

const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + i * 12.9898) * 0.5);

interface Rank {
  readonly runtime: Runtime;
  readonly optimizer: AdamW<never>;
  readonly scaler: GradScaler<never, Tensor>;
  /** Trains on this rank's share of a global batch; `factor` multiplies its loss. */
  step(number: number, factor?: number): Promise<number>;
  /** All that a step may change. */
  state(): Promise<string>;
  parameters(): Promise<string>;
}

function open(
  carrier: Carrier,
  options: GradientExchangeOptions,
  {
    runtime = cpuRuntime(),
    dtype = "float16",
    rule = {},
  }: {
    readonly runtime?: Runtime;
    readonly dtype?: "float32" | "float16";
    readonly rule?: GradScalerOptions;
  } = {},
): Rank {
  const parameter = (shape: readonly number[], seed: number, name: string) =>
    runtime.variable(
      numbers(
        shape.reduce((a, b) => a * b, 1),
        seed,
      ),
      shape,
      {
        ...{ requiresGrad: true, name },
      },
    );
  const weights = [
    parameter([width, features], 1, "first"),
    parameter([width, width], 2, "second"),
    parameter([4, width], 3, "third"),
  ] as const;
  const gain = parameter([width], 4, "gain");
  const shift = parameter([width], 5, "shift");
  const running = {
    mean: runtime.variable(new Float32Array(width), [width]),
    variance: runtime.variable(new Float32Array(width).fill(1), [width]),
  };
  const optimizer = new AdamW(
    runtime.target,
    [{ params: flatten(weights) }, { params: flatten([gain, shift]), weightDecay: 0 }],
    { lr: 0.01 },
  );
  const scaler = new GradScaler(ampPrimitives(runtime), { initScale: 2 ** 12, ...rule });
  const exchange = new GradientExchange(carrier, options);
  const share = globalBatch / carrier.size;
  const bytes = async (tensors: readonly Tensor[]): Promise<string> =>
    (await Promise.all(tensors.map((each) => each.toArray())))
      .map((values) =>
        Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString("hex"),
      )
      .join();
  const all = [...weights, gain, shift];
  return {
    runtime,
    optimizer: optimizer as never,
    scaler: scaler as never,
    async step(number, factor = 1) {
      const from = carrier.rank * share;
      const inputs = numbers(globalBatch * features, 100 + number);
      const loss = await runtime.step(() => {
        const x = runtime.tensor(inputs.subarray(from * features, (from + share) * features), [
          share,
          features,
        ]);
        const labels = runtime.tensor(
          Uint32Array.from({ length: share }, (_, i) => ((from + i) * 7 + number) % 4),
        );
        const lossOf = (): Tensor => {
          const hidden = relu(linear(x, weights[0]));
          const { mean, variance } = running;
          // Each rank has statistics of its own: they are moved, and not used.
          batchNorm(hidden.detach(), gain.detach(), shift.detach(), {
            running: { mean, variance },
          });
          const scaled = hidden.to("float32").mul(gain).add(shift);
          return crossEntropy(linear(relu(linear(scaled, weights[1])), weights[2]), labels);
        };
        const loss = dtype === "float32" ? lossOf() : autocast({ dtype }, lossOf);
        scaler.scale(loss.mul(factor)).backward();
        exchange.reduce(optimizer);
        scaler.step(optimizer);
        scaler.update();
        optimizer.zeroGrad();
        return loss;
      });
      const value = await loss.item();
      loss.dispose();
      return value;
    },
    parameters: () => bytes(all),
    state: async () =>
      JSON.stringify([
        await bytes([...all, running.mean, running.variance]),
        await optimizer.stateDict(),
        (await scaler.stateDict()) as object,
      ]),
  };
}

/** Trains ranks side by side; returns the mean loss of each step. */
async function train(ranks: readonly Rank[], steps: number): Promise<number[]> {
  const losses: number[] = [];
  for (let number = 0; number < steps; number++) {
    const all = await Promise.all(ranks.map((rank) => rank.step(number)));
    losses.push(all.reduce((a, b) => a + b) / ranks.length);
    const hashes = await Promise.all(ranks.map((rank) => rank.parameters()));
    for (const hash of hashes) expect(hash).toBe(hashes[0]);
  }
  return losses;
}

/** A carrier whose link is down for some collectives. */
const cutCarrier = (carrier: Carrier, isCut: (label: string) => boolean): Carrier => ({
  ...{ rank: carrier.rank, size: carrier.size, hosts: carrier.hosts, traffic: carrier.traffic },
  members: (scope) => carrier.members(scope),
  allocate: (bytes) => carrier.allocate(bytes),
  allToAll: (...args) => carrier.allToAll(...args),
  async allGather(...args) {
    const { label = "" } = args[2] ?? {};
    if (!isCut(label)) return carrier.allGather(...args);
    const { rank } = carrier;
    const fact = "the link is down";
    throw new ExchangeError("carrier", { rank, collective: `allGather of ${label}`, fact });
  },
  max: (...args) => carrier.max(...args),
  barrier: (...args) => carrier.barrier(...args),
  close: () => carrier.close(),
});

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
