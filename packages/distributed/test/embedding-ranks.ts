import { autocast } from "@halfstep/autocast";
import { GradScaler, type StepOutcome } from "@halfstep/grad-scaler";
import { AdamW } from "@halfstep/optim";
import {
  ampPrimitives,
  cpuRuntime,
  crossEntropy,
  embedding,
  flatten,
  linear,
  type Runtime,
  relu,
  type Tensor,
} from "@halfstep/tensor";
import type { Carrier } from "../src/carrier.js";
import {
  GradientExchange,
  type GradientExchangeOptions,
} from "../src/gradients/gradient-exchange.js";

// Ranks in one process that train two embeddings, of which one has the weights of the last product.

export const words = 50;
const [kinds, width] = [45, 9];

const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + i * 12.9898) * 0.5);

/** What a rank does in a step besides its share of the batch. */
interface StepOfRank {
  /** Multiplies the gradients of rows alone. */
  readonly rowFactor?: number;
  /** Records each micro-batch but the last in a step of its own. */
  readonly areApart?: boolean;
  /** The share of this rank. Default: as many as it has samples. */
  readonly weight?: number;
}

/** A rank that trains embeddings. */
export interface EmbeddingRank {
  readonly runtime: Runtime;
  /** Trains on samples, which are tokens of which the next one is to be predicted: in micro-batches, the last of which is exchanged. */
  step(microBatches: readonly Uint32Array[], options?: StepOfRank): Promise<number>;
  parameters(): Promise<string>;
  values(): Promise<readonly number[]>;
  outcomes(): Promise<readonly StepOutcome[]>;
}

/** Opens a rank. */
export function openRank(
  carrier: Carrier,
  options: GradientExchangeOptions,
  {
    runtime = cpuRuntime(),
    dtype = "float32",
    clip,
  }: {
    readonly runtime?: Runtime;
    readonly dtype?: "float32" | "float16";
    readonly clip?: number;
  } = {},
): EmbeddingRank {
  const parameter = (shape: readonly number[], seed: number, name: string) =>
    runtime.variable(numbers((shape[0] ?? 1) * (shape[1] ?? 1), seed), shape, {
      ...{ requiresGrad: true, name },
    });
  const table = parameter([words, width], 1, "table");
  const kind = parameter([kinds, width], 2, "kind");
  const weight = parameter([width, width], 3, "weight");
  const all = [table, kind, weight];
  const optimizer = new AdamW(runtime.target, flatten(all), {
    ...{ lr: 0.01, ...(clip !== undefined && { clipGradNorm: clip }) },
  });
  const scaler = new GradScaler(ampPrimitives(runtime), {
    initScale: 256,
    outcomeSchedule: false,
  });
  const exchange = new GradientExchange(carrier, { leastBytes: 600, ...options });
  const lossOf = (tokens: Uint32Array, rowFactor: number): Tensor => {
    const index = runtime.tensor(tokens);
    const kindOf = runtime.tensor(tokens.map((token) => token % kinds));
    const rows = embedding(index, table).add(embedding(kindOf, kind));
    // The value stays, and the gradient is multiplied.
    const scaled =
      rowFactor === 1 ? rows : rows.mul(rowFactor).add(rows.mul(1 - rowFactor).detach());
    const scores = linear(relu(linear(scaled, weight)), table);
    const next = runtime.tensor(tokens.map((token) => (token * 3 + 1) % words));
    return crossEntropy(scores, next);
  };
  return {
    runtime,
    async step(microBatches, { rowFactor = 1, weight: share, areApart = false } = {}) {
      const addGradients = (batches: readonly Uint32Array[]): Tensor =>
        batches
          .map((tokens) => {
            const own = (): Tensor => lossOf(tokens, rowFactor).div(microBatches.length);
            const loss = dtype === "float32" ? own() : autocast({ dtype }, own);
            scaler.scale(loss).backward();
            return loss.detach();
          })
          .reduce((sum, loss) => sum.add(loss));
      const last = areApart ? microBatches.slice(-1) : microBatches;
      for (const tokens of microBatches.slice(0, -last.length))
        await runtime.step(() => void addGradients([tokens]));
      const loss = await runtime.step(() => {
        const sum = addGradients(last);
        const samples = microBatches.reduce((count, { length }) => count + length, 0);
        exchange.reduce(optimizer, { weight: share ?? samples });
        scaler.step(optimizer);
        scaler.update();
        optimizer.zeroGrad();
        return sum;
      });
      const value = await loss.item();
      loss.dispose();
      return value;
    },
    async parameters() {
      const arrays = await Promise.all(all.map((each) => each.toArray() as Promise<Float32Array>));
      return arrays.map(({ buffer }) => Buffer.from(buffer).toString("hex")).join();
    },
    async values() {
      const arrays = await Promise.all(all.map((each) => each.toArray()));
      return arrays.flatMap((array) => [...array]);
    },
    outcomes: () => scaler.drain(),
  };
}

/** Distance of numbers from the right ones, relative to their norm. */
export function distance(found: readonly number[], right: readonly number[]): number {
  const norm = (each: readonly number[]): number => Math.hypot(...each);
  return norm(right.map((each, i) => each - (found[i] as number))) / norm(right);
}
