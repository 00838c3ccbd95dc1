import { type Carrier, inProcess } from "@halfstep/distributed";
import { GradScaler } from "@halfstep/grad-scaler";
import { AdamW, type OptimizerStateDict } from "@halfstep/optim";
import { ampPrimitives, cpuRuntime, flatten } from "@halfstep/tensor";
import { describe, expect, it } from "vitest";
import { classifier, lossOf, type Samples, sampleBatches } from "../test/classes.js";
import type { CheckpointStore } from "./checkpoint/checkpoint.js";
import { memoryCheckpoints } from "./checkpoint/memory-checkpoints.js";
import { type JobExchangeOptions, jobExchange } from "./job-exchange.js";
import { parameterSha256 } from "./parameter-hash.js";
import { train } from "./train.js";

const steps = 4;
const perBatch = 9;

/** The samples of some rows. */
const rowsOf = ({ features, labels }: Samples, from: number, to: number): Samples => ({
  features: features.slice(from * 6, to * 6),
  labels: labels.slice(from, to),
});

/** Trains one rank on its share of each batch; its last loss on all samples, and the hash of its parameters. */
async function trainRank(
  carrier: Carrier | undefined,
  share: readonly [from: number, to: number],
  options: Pick<JobExchangeOptions, "mode" | "wire">,
  store?: CheckpointStore,
): Promise<{ readonly loss: number; readonly hash: string }> {
  const runtime = cpuRuntime();
  const model = classifier(runtime);
  const { rank, size } = carrier ?? { rank: 0, size: 1 };
  const { hooks, reduce, shard, complete } = await jobExchange(
    { rank, size, ranks: size, carrier },
    { ...options, runtime, innerSteps: 2, lastStep: steps, parameters: model.parameters() },
  );
  const groups = shard([{ params: flatten(model.parameters()) }]);
  const optimizer = new AdamW(runtime.target, groups, { lr: 0.01 });
  await train<Samples>({
    ...{ runtime, precision: "float32", optimizer, epochs: 1, lr: () => 0.01, hooks },
    scaler: new GradScaler(ampPrimitives(runtime), { enabled: false }),
    loss: (batch) => lossOf(model, batch),
    batches: () => sampleBatches(2 * steps, perBatch, 0).map((batch) => rowsOf(batch, ...share)),
    accumulate: 2,
    ...(store && { checkpoints: { store, parts: { model, optimizer } } }),
    samples: ({ labels }) => labels.length,
    reduce: (batches) =>
      reduce?.(
        optimizer,
        batches.reduce((sum, { labels }) => sum + labels.length, 0),
      ),
  });
  if (!store) await complete();
  const loss = await runtime.step(() => lossOf(model, sampleBatches(1, 60, 1)[0] as Samples));
  return { loss: await loss.item(), hash: await parameterSha256(model.namedParameters()) };
}

describe("the ranks of a job", () => {
  // Shares of 2 and 7 of 9 samples.
  const shares = [
    [0, 2],
    [2, perBatch],
  ] as const;
  const together = (
    options: Pick<JobExchangeOptions, "mode" | "wire">,
    stores: readonly CheckpointStore[] = [],
  ) =>
    Promise.all(
      inProcess(2, { hosts: ["a", "b"] }).map((carrier, rank) =>
        trainRank(carrier, shares[rank] as (typeof shares)[number], options, stores[rank]),
      ),
    );

  it("train as one process on all samples, weighted by their shares", async () => {
    const alone = await trainRank(undefined, [0, perBatch], {});
    for (const [wire, limit] of [
      ["float32", 1e-5],
      ["float16", 5e-3],
    ] as const) {
      const [a, b] = await together({ wire });
      expect(b).toEqual(a);
      expect(Math.abs((a?.loss as number) / alone.loss - 1)).toBeLessThan(limit);
    }
  });

  it("train with shards of the optimizer, whose checkpoint has the states of all", async () => {
    const alone = await trainRank(undefined, [0, perBatch], {});
    const stores = [memoryCheckpoints(), memoryCheckpoints()] as const;
    const [a, b] = await together({ mode: "zero1", wire: "float32" }, stores);
    expect(b).toEqual(a);
    expect(Math.abs((a?.loss as number) / alone.loss - 1)).toBeLessThan(1e-5);
    const [saved, other] = await Promise.all(
      stores.map(async (store) => (await store.newest()).checkpoint?.parts ?? {}),
    );
    expect(other?.model).toEqual(saved?.model);
    expect(other?.optimizer).toEqual(saved?.optimizer);
    // The moments of every parameter: none is 0 as a whole.
    const groups = (saved?.optimizer as OptimizerStateDict | undefined)?.groups ?? [];
    for (const { expAvgSq } of Object.values(groups[0]?.state ?? {}))
      expect(Math.max(...(expAvgSq as Float32Array))).toBeGreaterThan(0);
  });

  it("end with equal parameters by DiLoCo", async () => {
    const [a, b] = await together({ mode: "diloco" });
    expect(b).toEqual(a);
  });
});
