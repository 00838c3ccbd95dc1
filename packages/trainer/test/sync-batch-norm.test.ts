import { type Carrier, inProcess } from "@halfstep/distributed";
import { BatchNorm2d, Conv2d, Dropout, Generator, Linear, Module } from "@halfstep/nn";
import { SGD } from "@halfstep/optim";
import { cpuRuntime, crossEntropy, flatten, type Runtime, type Tensor } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { jobExchange } from "../src/job-exchange.js";
import { parameterSha256 } from "../src/parameter-hash.js";

// Ranks whose batch norms and masks are those of one process on the whole batch.

const side = 6;

class SmallCnn extends Module {
  readonly conv1: Conv2d;
  readonly bn1: BatchNorm2d;
  readonly conv2: Conv2d;
  readonly bn2: BatchNorm2d;
  readonly dropout: Dropout;
  readonly fc: Linear;
  readonly generator: Generator = new Generator(3);

  constructor(runtime: Runtime) {
    super();
    const generator = new Generator(1);
    const conv = { kernelSize: 3, padding: 1, bias: false, generator };
    this.conv1 = new Conv2d(runtime, 1, 4, conv);
    this.bn1 = new BatchNorm2d(runtime, 4);
    this.conv2 = new Conv2d(runtime, 4, 4, conv);
    this.bn2 = new BatchNorm2d(runtime, 4);
    this.dropout = new Dropout({ p: 0.25, generator: this.generator });
    this.fc = new Linear(runtime, 4 * side * side, 3, { generator });
  }

  forward(x: Tensor): Tensor {
    const first = this.bn1.forward(this.conv1.forward(x)).relu();
    const second = this.bn2.forward(this.conv2.forward(first)).relu();
    return this.fc.forward(this.dropout.forward(second.reshape([x.shape[0] as number, -1])));
  }
}

const steps = 6;
const pixels = side * side;

/** Images of a step, brighter by their class, each with another brightness. */
const imagesOf = (batch: number, step: number): Float32Array =>
  Float32Array.from({ length: batch * pixels }, (_, i) => {
    const image = Math.floor(i / pixels);
    return (image % 3) + Math.sin(step * 7 + i * 12.9898) + image / 2;
  });

interface Share {
  readonly first: number;
  readonly count: number;
  readonly weight: number;
}

/** Trains one rank on its share of each batch: its losses, running statistics and the hash of its parameters. */
async function trainRank(carrier: Carrier | undefined, batch: number, share: Share) {
  const runtime = cpuRuntime();
  const model = new SmallCnn(runtime);
  const { rank, size } = carrier ?? { rank: 0, size: 1 };
  const exchange = await jobExchange(
    { rank, size, ranks: size, carrier },
    {
      ...{ runtime, wire: "float32", lastStep: steps, parameters: model.parameters() },
      ...{ synchronized: model, generator: model.generator },
    },
  );
  const optimizer = new SGD(runtime.target, flatten(model.parameters()), { lr: 0.1 });
  const losses: number[] = [];
  for (let step = 0; step < steps; step++) {
    const { first, count, weight } = share;
    const images = imagesOf(batch, step).subarray(first * pixels, (first + count) * pixels);
    const loss = await runtime.step(() => {
      exchange.begin({ weight, part: { first, count, total: batch } });
      const x = runtime.tensor(images, [count, side, side, 1]);
      const labels = Uint32Array.from({ length: count }, (_, i) => (first + i) % 3);
      const loss = crossEntropy(model.forward(x), runtime.tensor(labels));
      loss.backward();
      exchange.reduce?.(optimizer, { weight });
      optimizer.step();
      optimizer.zeroGrad();
      return loss;
    });
    losses.push(await loss.item());
    loss.dispose();
  }
  const { bn1, bn2 } = model;
  const running = await Promise.all(
    [bn1, bn2].flatMap((bn) => [bn.runningMean.toArray(), bn.runningVar.toArray()]),
  );
  return {
    losses,
    running: running.flatMap((values) => [...values]),
    hash: await parameterSha256(model.namedParameters()),
    offset: model.generator.offset,
  };
}

const distance = (a: readonly number[], b: readonly number[]): number =>
  Math.max(...a.map((value, i) => Math.abs(value / (b[i] as number) - 1)));

describe("batch norms of all ranks, and masks by sample", () => {
  test.each([
    ["two equal shares", 8, [4, 4]],
    ["shares of 2 and 5", 7, [2, 5]],
    ["a rank without samples of its own", 2, [1, 1, 0]],
  ] as const)("%s: the losses and statistics of one process", async (_, batch, counts) => {
    const alone = await trainRank(undefined, batch, { first: 0, count: batch, weight: 1 });
    const shares = counts.map((weight, rank): Share => {
      const first = counts.slice(0, rank).reduce<number>((a, b) => a + b, 0);
      // A rank without samples repeats the first.
      return weight > 0 ? { first, count: weight, weight } : { first: 0, count: 1, weight };
    });
    const hosts = counts.map((_, rank) => `host ${rank}`);
    const ranks = await Promise.all(
      inProcess(counts.length, { hosts }).map((carrier, rank) =>
        trainRank(carrier, batch, shares[rank] as Share),
      ),
    );
    const means = alone.losses.map(
      (_, step) =>
        ranks.reduce((sum, { losses }, r) => sum + (counts[r] ?? 0) * (losses[step] as number), 0) /
        batch,
    );
    expect(distance(means, alone.losses)).toBeLessThan(1e-4);
    for (const rank of ranks) {
      expect(rank.hash).toBe(ranks[0]?.hash);
      expect(rank.running).toEqual(ranks[0]?.running);
      expect(rank.offset).toBe(alone.offset);
    }
    expect(distance(ranks[0]?.running ?? [], alone.running)).toBeLessThan(1e-4);
  });
});
