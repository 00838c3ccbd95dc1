import { autocast } from "@halfstep/autocast";
import { encodeArray, float16 } from "@halfstep/formats";
import { GradScaler, type GradScalerOptions, type ScalerStateDict } from "@halfstep/grad-scaler";
import { AdamW, type OptimizerStateDict } from "@halfstep/optim";
import {
  ampPrimitives,
  batchNorm,
  cpuRuntime,
  crossEntropy,
  flatten,
  linear,
  type Runtime,
  relu,
  type Tensor,
} from "@halfstep/tensor";
import type { Carrier } from "../src/carrier.js";
import { ExchangeError } from "../src/errors.js";
import {
  GradientExchange,
  type GradientExchangeOptions,
  type ShardedVariables,
} from "../src/gradients/gradient-exchange.js";

// Ranks are runtimes in one process: an MLP with running statistics, weights in one group and the rest in another.

const globalBatch = 16;
const features = 16;

const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + i * 12.9898) * 0.5);

/** A checkpoint of training. */
export interface SavedRank {
  readonly values: readonly Float32Array[];
  readonly optimizer: OptimizerStateDict;
  readonly scaler: Partial<ScalerStateDict>;
}

/** One rank that trains. */
export interface Rank {
  readonly runtime: Runtime;
  readonly optimizer: AdamW<never>;
  readonly scaler: GradScaler<never, Tensor>;
  /** Aborted when this rank is in its last step. */
  readonly signal: AbortSignal;
  /** Trains on this rank's share of a global batch; `factor` multiplies its loss, and `weight` weighs its gradients. */
  step(number: number, factor?: number, weight?: number): Promise<number>;
  /** A checkpoint, which all ranks save together, and which loads into any number of ranks. */
  save(): Promise<SavedRank>;
  load(saved: SavedRank): Promise<void>;
  /** All that a step may change. */
  state(): Promise<string>;
  parameters(): Promise<string>;
  /** The parameters rounded to float16, as the forward pass reads most of them. */
  rounded(): Promise<string>;
}

/** Opens a rank. */
export function open(
  carrier: Carrier,
  options: GradientExchangeOptions,
  {
    runtime = cpuRuntime(),
    dtype = "float16",
    rule = {},
    clip,
    width = 16,
    givesScale = false,
  }: {
    readonly runtime?: Runtime;
    readonly dtype?: "float32" | "float16";
    readonly rule?: GradScalerOptions;
    /** The largest norm of all gradients. */
    readonly clip?: number;
    /** Features of hidden layers. */
    readonly width?: number;
    /** Whether the exchange gets the loss scale. */
    readonly givesScale?: boolean;
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
  const exchange = new GradientExchange(carrier, options);
  const [matrices, others] = exchange.shard(runtime, [
    flatten(weights),
    flatten([gain, shift]),
  ]) as [ShardedVariables, ShardedVariables];
  const optimizer = new AdamW(
    runtime.target,
    [{ params: matrices }, { params: others, weightDecay: 0 }],
    { lr: 0.01, ...(clip !== undefined && { clipGradNorm: clip }) },
  );
  const scaler = new GradScaler(ampPrimitives(runtime), {
    ...{ initScale: 2 ** 12, outcomeSchedule: false },
    ...rule,
  });
  const share = globalBatch / carrier.size;
  const arraysOf = (tensors: readonly Tensor[]): Promise<Float32Array[]> =>
    Promise.all(tensors.map((each) => each.toArray() as Promise<Float32Array>));
  const bytes = async (tensors: readonly Tensor[]): Promise<string> =>
    (await arraysOf(tensors))
      .map((values) =>
        Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString("hex"),
      )
      .join();
  const all = [...weights, gain, shift];
  return {
    runtime,
    scaler: scaler as never,
    signal: exchange.signal,
    async step(number, factor = 1, weight = 1) {
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
        exchange.reduce(optimizer, {
          weight,
          gradScale: givesScale ? scaler.gradScale() : undefined,
        });
        scaler.step(optimizer);
        scaler.update();
        optimizer.zeroGrad();
        return loss;
      });
      const value = await loss.item();
      loss.dispose();
      return value;
    },
    optimizer: optimizer as never,
    async parameters() {
      await exchange.complete();
      return bytes(all);
    },
    async rounded() {
      const arrays = await arraysOf(all);
      return arrays.map((values) => encodeArray(values, float16).join()).join();
    },
    async load(saved) {
      await runtime.step(() => {
        for (const [i, each] of all.entries())
          each.assign(runtime.tensor(saved.values[i] as Float32Array, each.shape));
      });
      optimizer.loadStateDict(saved.optimizer);
      scaler.loadStateDict(saved.scaler);
    },
    async save() {
      await exchange.complete();
      return {
        values: await arraysOf(all),
        optimizer: await optimizer.stateDict(),
        scaler: await scaler.stateDict(),
      };
    },
    state: async () =>
      JSON.stringify([
        await bytes([...all, running.mean, running.variance]),
        await optimizer.stateDict(),
        (await scaler.stateDict()) as object,
      ]),
  };
}

/** Trains ranks side by side; returns the mean loss of each step. */
export async function train(ranks: readonly Rank[], steps: number): Promise<number[]> {
  const losses: number[] = [];
  for (let number = 0; number < steps; number++) {
    const all = await Promise.all(ranks.map((rank) => rank.step(number)));
    losses.push(all.reduce((a, b) => a + b) / ranks.length);
    const hashes = await Promise.all(ranks.map((rank) => rank.parameters()));
    const other = hashes.findIndex((hash) => hash !== hashes[0]);
    if (other >= 0) throw new Error(`step ${number}: the parameters of rank ${other} differ`);
  }
  return losses;
}

/** A carrier whose link is down for some collectives. */
export const cutCarrier = (carrier: Carrier, isCut: (label: string) => boolean): Carrier => ({
  ...{ rank: carrier.rank, size: carrier.size, hosts: carrier.hosts, traffic: carrier.traffic },
  members: (scope) => carrier.members(scope),
  allocate: (bytes) => carrier.allocate(bytes),
  async allToAll(...args) {
    requireLink("allToAll", carrier, args[2]?.label, isCut);
    await carrier.allToAll(...args);
  },
  async allGather(...args) {
    requireLink("allGather", carrier, args[2]?.label, isCut);
    await carrier.allGather(...args);
  },
  max: (...args) => carrier.max(...args),
  barrier: (...args) => carrier.barrier(...args),
  close: () => carrier.close(),
});

function requireLink(
  kind: string,
  { rank }: Carrier,
  label: string | undefined,
  isCut: (label: string) => boolean,
): void {
  if (!isCut(label ?? "")) return;
  const fact = "the link is down";
  throw new ExchangeError("carrier", { rank, collective: `${kind} of ${label}`, fact });
}
