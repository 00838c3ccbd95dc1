import { type Carrier, DiLoCo, ExchangeError, inProcess } from "@halfstep/distributed";
import { GradScaler } from "@halfstep/grad-scaler";
import { AdamW, type OptimizerStateDict } from "@halfstep/optim";
import { ampPrimitives, cpuRuntime, flatten, HostOpError } from "@halfstep/tensor";
import { describe, expect, it } from "vitest";
import { classifier, lossOf, type Samples, sampleBatches } from "../test/classes.js";
import type { CheckpointStore } from "./checkpoint/checkpoint.js";
import { memoryCheckpoints } from "./checkpoint/memory-checkpoints.js";
import { type JobExchangeOptions, jobExchange } from "./job-exchange.js";
import { parameterSha256 } from "./parameter-hash.js";
import { train } from "./train.js";

const [epochs, perEpoch, accumulate] = [2, 4, 2];
const steps = epochs * perEpoch;
const perBatch = 9;

/** The samples of some rows. */
const rowsOf = ({ features, labels }: Samples, from: number, to: number): Samples => ({
  features: features.slice(from * 6, to * 6),
  labels: labels.slice(from, to),
});

interface RankOptions extends Pick<JobExchangeOptions, "mode" | "wire" | "powerSgd"> {
  readonly store?: CheckpointStore;
  /** Tells this rank to stop while it records its second step. */
  readonly tellToStop?: boolean;
  /** Saves after every so many steps. Default: at the end alone. */
  readonly saveEvery?: number;
}

/** A carrier that fails in its n-th gather of parameters, which others may have completed, or in the collective behind it. */
function failingCarrier(carrier: Carrier, gather: number, at: "the gather" | "behind"): Carrier {
  let gathers = 0;
  const call = async (kind: string, label = "", run: () => Promise<void>): Promise<void> => {
    const fail = (): never => {
      const setting = { rank: carrier.rank, collective: `${kind} of ${label}` };
      throw new ExchangeError("carrier", { ...setting, fact: "the link is down" });
    };
    if (gathers >= gather) fail();
    if (label.startsWith("parameters")) gathers++;
    await run();
    if (gathers >= gather && at === "the gather") fail();
  };
  return {
    ...{ rank: carrier.rank, size: carrier.size, hosts: carrier.hosts, traffic: carrier.traffic },
    members: (scope) => carrier.members(scope),
    allocate: (bytes) => carrier.allocate(bytes),
    allToAll: (...args) => call("allToAll", args[2]?.label, () => carrier.allToAll(...args)),
    allGather: (...args) => call("allGather", args[2]?.label, () => carrier.allGather(...args)),
    max: (...args) => call("max", args[1]?.label, () => carrier.max(...args)),
    barrier: (...args) => call("barrier", args[0]?.label, () => carrier.barrier(...args)),
    close: () => carrier.close(),
  };
}

/** Trains one rank on its share of each batch; its last loss on all samples, and the hash of its parameters. */
async function trainRank(
  carrier: Carrier | undefined,
  share: readonly [from: number, to: number],
  { store, tellToStop, saveEvery, ...options }: RankOptions,
): Promise<{ readonly loss: number; readonly hash: string; readonly steps: number }> {
  const runtime = cpuRuntime();
  const model = classifier(runtime);
  const { rank, size } = carrier ?? { rank: 0, size: 1 };
  const told = new AbortController();
  const { hooks, reduce, shard, complete, signal } = await jobExchange(
    { rank, size, ranks: size, carrier },
    {
      ...{ ...options, runtime, innerSteps: 2, lastStep: steps, parameters: model.parameters() },
      signal: told.signal,
    },
  );
  const groups = shard([{ params: flatten(model.parameters()) }]);
  const optimizer = new AdamW(runtime.target, groups, { lr: 0.01 });
  const scaler = new GradScaler(ampPrimitives(runtime), { enabled: false });
  let recorded = 0;
  const result = await train<Samples>({
    ...{ runtime, precision: "float32", optimizer, scaler, epochs, lr: () => 0.01, hooks, signal },
    loss(batch) {
      if (tellToStop && recorded++ === accumulate) told.abort();
      return lossOf(model, batch);
    },
    batches: () =>
      sampleBatches(accumulate * perEpoch, perBatch, 0).map((batch) => rowsOf(batch, ...share)),
    accumulate,
    ...(store && {
      checkpoints: {
        ...{ store, resume: "auto", parts: { model, optimizer } },
        ...(saveEvery !== undefined && { every: { steps: saveEvery } }),
      },
    }),
    samples: ({ labels }) => labels.length,
    reduce: (batches) =>
      reduce?.(optimizer, {
        weight: batches.reduce((sum, { labels }) => sum + labels.length, 0),
        scaler,
      }),
  });
  if (!store) await complete();
  const loss = await runtime.step(() => lossOf(model, sampleBatches(1, 60, 1)[0] as Samples));
  const hash = await parameterSha256(model.namedParameters());
  return { loss: await loss.item(), hash, steps: result.steps };
}

describe("the ranks of a job", () => {
  // Shares of 2 and 7 of 9 samples.
  const shares = [
    [0, 2],
    [2, perBatch],
  ] as const;
  const eachRank = (
    options: RankOptions,
    own: (rank: number) => RankOptions = () => ({}),
    cut: (carrier: Carrier) => Carrier = (carrier) => carrier,
  ) =>
    inProcess(2, { hosts: ["a", "b"] }).map((carrier, rank) =>
      trainRank(cut(carrier), shares[rank] as (typeof shares)[number], {
        ...{ ...options, ...own(rank) },
      }),
    );
  const together = (...args: Parameters<typeof eachRank>) => Promise.all(eachRank(...args));
  /** Rank 0 saves for all. */
  const oneStore = () => {
    const store = memoryCheckpoints();
    const only = { newest: () => store.newest(), save: async () => {} };
    return { store, own: (rank: number): RankOptions => ({ store: rank === 0 ? store : only }) };
  };

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
    const [a, b] = await together({ mode: "zero1", wire: "float32" }, (rank) => ({
      store: stores[rank] as CheckpointStore,
    }));
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

  it.each([
    ["shards", { mode: "zero1", wire: "float32" }],
    ["compressed gradients", { powerSgd: 1, wire: "float32" }],
  ] as const)(
    "told to stop, stop after the same step and go on with the same bits, with %s",
    async (_, options) => {
      const [unbroken] = await together(options);
      const { store, own } = oneStore();
      const stopped = await together(options, (rank) => ({ ...own(rank), tellToStop: rank === 1 }));
      const [last] = stopped.map((each) => each.steps);
      // Four steps after the one in whose exchange they agree: the second, or the first where that still waits when the second is recorded.
      expect([5, 6]).toContain(last);
      expect(stopped.map((each) => each.steps)).toEqual([last, last]);
      expect((await store.newest()).checkpoint?.step).toBe(last);
      const resumed = await together(options, own);
      expect(resumed.map(({ hash }) => hash)).toEqual([unbroken?.hash, unbroken?.hash]);
    },
  );

  it.each([
    ["no rank gets", 5, "the gather"],
    // The rank that has them comes to a checkpoint, which needs the other.
    ["one rank alone gets", 6, "behind"],
  ] as const)(
    "end where %s the updated parameters, and go on from their checkpoint with the same bits",
    async (_, gather, at) => {
      const options = { mode: "zero1", wire: "float16" } as const;
      const [unbroken] = await together(options);
      const { store, own } = oneStore();
      const cut = (carrier: Carrier): Carrier =>
        failingCarrier(carrier, gather, carrier.rank === 0 ? at : "the gather");
      const ends = await Promise.allSettled(eachRank({ ...options, saveEvery: 2 }, own, cut));
      const errors = ends.map((end) => (end.status === "rejected" ? end.reason : undefined));
      expect(errors[1]).toBeInstanceOf(HostOpError);
      expect(errors[1].cause).toBeInstanceOf(ExchangeError);
      expect(errors[1].message).toContain("rank 1: allGather of parameters of group 0");
      expect(errors[1].message).toContain("has changed parameters");
      expect(errors[0].message).toMatch(/rank 0: allGather of (parameters|the optimizer's state)/);
      expect((await store.newest()).checkpoint?.step).toBe(4);
      const resumed = await together(options, own);
      expect(resumed.map(({ hash }) => hash)).toEqual([unbroken?.hash, unbroken?.hash]);
    },
  );

  it("save by rank 0 alone, and all read", async () => {
    const store = memoryCheckpoints();
    const jobs = [0, 1].map((rank) => ({ rank, size: 2, ranks: 2, carrier: undefined }));
    const parameters = classifier(cpuRuntime()).parameters();
    const options = { runtime: cpuRuntime(), lastStep: 1, parameters };
    const [first, second] = await Promise.all(
      jobs.map(async (job) => (await jobExchange(job, options)).store(store)),
    );
    const content = { step: 1, microStep: 0, best: false, parts: {} };
    await second?.save(content);
    expect((await store.newest()).checkpoint).toBeUndefined();
    await first?.save(content);
    expect((await second?.newest())?.checkpoint?.step).toBe(1);
  });

  it("are refused what would leave each of them alone", async () => {
    const [carrier] = inProcess(2) as [Carrier];
    const options = {
      ...{ runtime: cpuRuntime(), lastStep: 1 },
      parameters: classifier(cpuRuntime()).parameters(),
    };
    const job = { rank: 0, size: 2, ranks: 2, carrier };
    for (const [wrong, more, text] of [
      [
        carrier,
        {},
        "job is no job: pass the job of openRun(), or { carrier, rank, size, ranks: size }",
      ],
      [{}, {}, "job is no job"],
      [
        job,
        { mode: "zero2" },
        'mode is "zero2": it must be "allReduce", "zero1", "auto", "diloco"',
      ],
      [job, { inerSteps: 3 }, "jobExchange() has no option inerSteps"],
      [job, { runtime: undefined }, "jobExchange takes an object with options: pass runtime"],
    ] as const)
      await expect(jobExchange(wrong as never, { ...options, ...more } as never)).rejects.toThrow(
        text,
      );
  });

  it("cannot repeat batches by DiLoCo, which counts steps", async () => {
    const [carrier] = inProcess(1) as [Carrier];
    const runtime = cpuRuntime();
    const model = classifier(runtime);
    const parameters = [...model.parameters()];
    const failing = train<Samples>({
      ...{ runtime, precision: "float32", epochs: 1, lr: () => 0, onOverflow: "retry" },
      optimizer: new AdamW(runtime.target, flatten(parameters), { lr: 0 }),
      scaler: new GradScaler(ampPrimitives(runtime)),
      loss: (batch) => lossOf(model, batch),
      batches: () => sampleBatches(1, 9, 0),
      hooks: { diloco: new DiLoCo(carrier, parameters) },
    });
    await expect(failing).rejects.toThrow('and diloco exchanges after equally many: use "skip"');
  });

  it("end with equal parameters by DiLoCo", async () => {
    const [a, b] = await together({ mode: "diloco" });
    expect(b).toEqual(a);
  });
});
