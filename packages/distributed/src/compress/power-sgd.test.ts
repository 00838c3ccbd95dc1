import { GradScaler } from "@halfstep/grad-scaler";
import { SGD } from "@halfstep/optim";
import { ampPrimitives, cpuRuntime, flatten, type Storage } from "@halfstep/tensor";
import { describe, expect, it } from "vitest";
import type { Carrier } from "../carrier.js";
import { GradientExchange } from "../gradients/gradient-exchange.js";
import { inProcess } from "../in-process/in-process.js";
import { orthonormalize } from "./low-rank.js";
import type { CompressionState } from "./matrix-states.js";

const [rows, columns] = [12, 16];

/** A matrix of rank 1 on each rank, other matrices on the other. */
const rankOne = (rank: number): Float32Array =>
  Float32Array.from(
    { length: rows * columns },
    (_, i) => Math.sin(1 + rank + Math.floor(i / columns)) * Math.cos((i % columns) * (rank + 2)),
  );

const full = (rank: number, step: number): Float32Array =>
  Float32Array.from({ length: rows * columns }, (_, i) => Math.sin(i * i + rank * 7 + step));

const meanOf = (a: Float32Array, b: Float32Array): number[] =>
  [...a].map((value, i) => (value + (b[i] as number)) / 2);

/** A rank that holds its parameters at zero, takes gradients, and sums up the steps that they make. */
function open(carrier: Carrier, options: { rank: number; errorFeedback?: boolean }) {
  const runtime = cpuRuntime();
  const weight = runtime.variable(new Float32Array(rows * columns), [rows, columns], {
    ...{ requiresGrad: true, name: "weight" },
  });
  const bias = runtime.variable(new Float32Array(4), [4], { requiresGrad: true, name: "bias" });
  const optimizer = new SGD<Storage>(runtime.target, flatten([weight, bias]), { lr: 1 });
  const scaler = new GradScaler(ampPrimitives(runtime), { initScale: 64, growthInterval: 2 });
  const exchange = new GradientExchange(carrier, {
    ...{ wire: "float32", compress: { powerSgd: options } },
  });
  return {
    exchange,
    /** Steps along a gradient; the sums of all steps so far. */
    async step(gradient: Float32Array) {
      await runtime.step(() => {
        const loss = weight
          .mul(runtime.tensor(gradient, [rows, columns]))
          .sum()
          .add(bias.mul(runtime.tensor(Float32Array.of(1, 2, 3, carrier.rank))).sum());
        scaler.scale(loss).backward();
        exchange.reduce(optimizer, { gradScale: scaler.gradScale() });
        scaler.step(optimizer);
        scaler.update();
        optimizer.zeroGrad();
      });
      const [w, b] = await Promise.all([weight.toArray(), bias.toArray()]);
      return { weight: [...w].map((value) => 0 - value), bias: [...b].map((value) => 0 - value) };
    },
  };
}

const ranksOf = (options: { rank: number; errorFeedback?: boolean }) =>
  inProcess(2, { hosts: ["a", "b"] }).map((carrier) => open(carrier, options));

const close = (found: readonly number[] | undefined, right: readonly number[]): void => {
  for (const [i, value] of right.entries()) expect(found?.[i]).toBeCloseTo(value, 4);
};

const distance = (found: readonly number[], right: readonly number[]): number =>
  Math.hypot(...found.map((value, i) => value - (right[i] as number))) / Math.hypot(...right);

describe("PowerSGD", () => {
  it("exchanges matrices of low rank exactly, and vectors as they are", async () => {
    const ranks = ranksOf({ rank: 2 });
    const [a, b] = await Promise.all(ranks.map((rank, i) => rank.step(rankOne(i))));
    expect(b).toEqual(a);
    close(a?.weight, meanOf(rankOne(0), rankOne(1)));
    expect(a?.bias).toEqual([1, 2, 3, 0.5]);
  });

  it("makes up for what it leaves out, under a scale that changes and over a skipped step", async () => {
    const run = async (errorFeedback: boolean) => {
      const ranks = ranksOf({ rank: 2, errorFeedback });
      const sum = new Array<number>(rows * columns).fill(0);
      let last: number[] = [];
      for (let step = 0; step < 30; step++) {
        const isBad = step === 9;
        const found = await Promise.all(
          ranks.map((rank, i) => {
            const gradient = full(i, 0);
            if (isBad && i === 1) gradient[5] = Number.POSITIVE_INFINITY;
            return rank.step(gradient);
          }),
        );
        expect(found[1]).toEqual(found[0]);
        if (isBad) expect(found[0]?.weight).toEqual(last);
        else
          for (const [i, value] of meanOf(full(0, 0), full(1, 0)).entries())
            sum[i] = (sum[i] as number) + value;
        last = found[0]?.weight ?? [];
      }
      return distance(last, sum);
    };
    const [withFeedback, without] = [await run(true), await run(false)];
    expect(withFeedback).toBeLessThan(0.25);
    expect(without).toBeGreaterThan(0.5);
  });

  it("goes on from its state as if nothing had been, and with as many numbers left out on ranks of another number", async () => {
    const gradientOf = (rank: number) => full(rank, 0);
    const stepAll = async (ranks: ReturnType<typeof ranksOf>, of = gradientOf) =>
      (await Promise.all(ranks.map((rank, i) => rank.step(of(i)))))[0]?.weight ?? [];
    const unbroken = ranksOf({ rank: 2 });
    for (let step = 0; step < 3; step++) await stepAll(unbroken);
    const before = await stepAll(unbroken);
    const saved = await Promise.all(unbroken.map(({ exchange }) => exchange.stateDict()));
    expect(saved[1]).toEqual(saved[0]);
    const state = saved[0] as CompressionState;
    const after = await stepAll(unbroken);
    const change = after.map((value, i) => value - (before[i] as number));

    // Bits of a step from other parameters differ, so the states after it are compared.
    const resumed = ranksOf({ rank: 2 });
    for (const { exchange } of resumed) exchange.loadStateDict(state);
    close(await stepAll(resumed), change);
    const states = [unbroken, resumed].map((ranks) =>
      Promise.all(ranks.map(({ exchange }) => exchange.stateDict())),
    );
    expect(await states[1]).toEqual(await states[0]);

    // Three ranks whose gradients have the same mean.
    const three = inProcess(3).map((carrier) => open(carrier, { rank: 2 }));
    for (const { exchange } of three) exchange.loadStateDict(state);
    const mean = Float32Array.from(meanOf(full(0, 0), full(1, 0)));
    close(await stepAll(three, () => mean.slice()), change);
  });

  it.each([
    ["nothing", undefined],
    ["no groups", {}],
    ["a group that is no list", { groups: [3] }],
    ["a matrix that is null", { groups: [[null]] }],
    ["factors as a list", { groups: [[{ offset: 0, right: [1], residuals: [] }]] }],
    [
      "residuals of other lengths",
      {
        groups: [
          [
            {
              offset: 0,
              right: new Float32Array(2),
              residuals: [new Float32Array(2), new Float32Array(3)],
            },
          ],
        ],
      },
    ],
  ])("refuses a state of %s, and keeps its own", async (_, state) => {
    const ranks = ranksOf({ rank: 2 });
    await Promise.all(ranks.map((rank, i) => rank.step(full(i, 0))));
    const states = () => Promise.all(ranks.map(({ exchange }) => exchange.stateDict()));
    const before = await states();
    for (const { exchange } of ranks)
      expect(() => exchange.loadStateDict(state as unknown as CompressionState)).toThrow(
        /no state of compressed gradients: pass/,
      );
    expect(await states()).toEqual(before);
  });

  it("keeps the states of optimizers apart whose gradients it exchanges one after the other", async () => {
    const run = async (carrier: Carrier) => {
      const runtime = cpuRuntime();
      const exchange = new GradientExchange(carrier, { compress: { powerSgd: { rank: 2 } } });
      const shapes = [
        [rows, columns],
        [columns, rows],
      ] as const;
      const all = shapes.map((shape) => {
        const weight = runtime.variable(new Float32Array(rows * columns), shape, {
          ...{ requiresGrad: true, name: "weight" },
        });
        return {
          weight,
          optimizer: new SGD<Storage>(runtime.target, flatten([weight]), { lr: 1 }),
        };
      });
      for (let step = 0; step < 2; step++)
        await runtime.step(() => {
          for (const { weight, optimizer } of all) {
            const gradient = rankOne(carrier.rank);
            weight.mul(runtime.tensor(gradient, weight.shape)).sum().backward();
            exchange.reduce(optimizer);
            optimizer.step();
            optimizer.zeroGrad();
          }
        });
      return Promise.all(all.map(({ weight }) => weight.toArray()));
    };
    const [found] = await Promise.all(inProcess(2).map(run));
    const right = meanOf(rankOne(0), rankOne(1)).map((value) => -2 * value);
    close([...(found?.[0] ?? [])], right);
  });

  it("refuses what has no meaning", () => {
    const [carrier] = inProcess(2) as unknown as [Carrier];
    const powerSgd = { rank: 2 };
    expect(() => new GradientExchange(carrier, { mode: "zero1", compress: { powerSgd } })).toThrow(
      TypeError,
    );
    expect(() => new GradientExchange(carrier, { compress: { powerSgd: { rank: 0 } } })).toThrow(
      RangeError,
    );
  });
});

it("columns become orthonormal, and dependent ones zero", () => {
  const columns = Float32Array.of(3, 6, 1, 4, 8, 0, 0, 0, 2);
  orthonormalize(columns, 3);
  const expected = [0.6, 0, 0.2971, 0.8, 0, -0.2228, 0, 0, 0.9285];
  for (const [i, value] of expected.entries()) expect(columns[i]).toBeCloseTo(value, 3);
});
