import { autocast } from "@halfstep/autocast";
import { type Carrier, GradientExchange, inProcess, type Wire } from "@halfstep/distributed";
import { GradScaler } from "@halfstep/grad-scaler";
import { GPT } from "@halfstep/models";
import { AdamW } from "@halfstep/optim";
import { ampPrimitives, cpuRuntime, crossEntropy, flatten, type Tensor } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { parameterSha256 } from "../src/parameter-hash.js";

// Ranks that train a GPT, whose head has the weights of the token embedding: what the head gives is exchanged before the rows of the batch.

const vocabSize = 384;
const [sequences, length, width] = [4, 12, 32];

/** Tokens of a step, many of them several times, and those that follow them. */
const tokensOf = (step: number): Uint32Array =>
  Uint32Array.from(
    { length: sequences * (length + 1) },
    (_, i) => ((i * 7) % 31) * 12 + ((step * 5 + i) % 3),
  );

/** A rank that trains on its share of each batch. */
function open(carrier: Carrier, wire: Wire, dtype: "float32" | "float16") {
  const runtime = cpuRuntime();
  const model = new GPT(runtime, {
    ...{ seed: 1, vocabSize, blockSize: 16, nLayer: 2, nHead: 2, nEmbd: width },
  });
  const parameters = [...model.parameters()];
  const matrices = flatten(parameters.filter(({ shape }) => shape.length > 1));
  const others = flatten(parameters.filter(({ shape }) => shape.length === 1));
  const groups = [{ params: matrices }, { params: others, weightDecay: 0 }];
  const optimizer = new AdamW(runtime.target, groups, { lr: 3e-3, clipGradNorm: 1 });
  const scaler = new GradScaler(ampPrimitives(runtime), { initScale: 2 ** 10 });
  const exchange = new GradientExchange(carrier, { wire, leastBytes: 4096 });
  const share = sequences / carrier.size;
  const step = async (number: number): Promise<number> => {
    const all = tokensOf(number);
    const cut = (first: number) =>
      Uint32Array.from(
        { length: share * length },
        (_, i) =>
          all[
            (carrier.rank * share + Math.floor(i / length)) * (length + 1) + (i % length) + first
          ] as number,
      );
    const loss = await runtime.step(() => {
      const tokens = runtime.tensor(cut(0), [share, length]);
      const lossOf = (): Tensor =>
        crossEntropy(
          model.forward(tokens).reshape([share * length, vocabSize]),
          runtime.tensor(cut(1)),
        );
      const loss = dtype === "float32" ? lossOf() : autocast({ dtype }, lossOf);
      scaler.scale(loss).backward();
      exchange.reduce(optimizer);
      scaler.step(optimizer);
      scaler.update();
      optimizer.zeroGrad();
      return loss;
    });
    const value = await loss.item();
    loss.dispose();
    return value;
  };
  const values = async (): Promise<number[]> =>
    (await Promise.all(parameters.map((each) => each.toArray()))).flatMap((array) => [...array]);
  return { runtime, step, values, hash: () => parameterSha256(model.namedParameters()) };
}

describe("ranks that train a GPT with a tied embedding", () => {
  test.each([
    ["float32", "float32", 1e-4],
    ["float16", "float16", 5e-3],
    ["bfloat16", "float32", 5e-3],
  ] as const)("over %s, in %s: the parameters of one rank", async (wire, dtype, limit) => {
    const steps = 8;
    const alone = open(inProcess(1)[0] as Carrier, wire, dtype);
    const carriers = inProcess(2, { hosts: ["a", "b"] });
    const ranks = carriers.map((carrier) => open(carrier, wire, dtype));
    for (let number = 0; number < steps; number++) {
      const right = await alone.step(number);
      const losses = await Promise.all(ranks.map((rank) => rank.step(number)));
      const [first, second] = await Promise.all(ranks.map((rank) => rank.hash()));
      expect(second, `after step ${number}`).toBe(first);
      const mean = losses.reduce((a, b) => a + b) / losses.length;
      expect(Math.abs(mean - right) / right, `the loss of step ${number}`).toBeLessThan(limit);
    }
    const right = await alone.values();
    const found = await ranks[0]?.values();
    const squares = (numbers: readonly number[]) =>
      numbers.reduce((sum, each) => sum + each ** 2, 0);
    const distance = squares(right.map((each, i) => each - (found?.[i] as number)));
    expect(Math.sqrt(distance / squares(right))).toBeLessThan(limit);
  });
});
