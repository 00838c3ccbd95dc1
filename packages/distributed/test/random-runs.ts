import { GradScaler } from "@halfstep/grad-scaler";
import { SGD } from "@halfstep/optim";
import { ampPrimitives, cpuRuntime, embedding, flatten, type Storage } from "@halfstep/tensor";
import type { Carrier } from "../src/carrier.js";
import { DiLoCo } from "../src/diloco/diloco.js";
import { ExchangeError } from "../src/errors.js";
import {
  GradientExchange,
  type GradientExchangeOptions,
} from "../src/gradients/gradient-exchange.js";
import { simulated } from "../src/testing.js";

// Trainings over a simulated network whose parameters are known: gradients are small whole numbers, which every wire carries exactly.

const [rows, columns] = [24, 32];
const steps = 3;
const layouts = [
  ["a", "a"],
  ["a", "b"],
  ["a", "b", "b"],
  ["a", "a", "b", "b"],
];

/** A row of one rank's gradient in a step. The matrix has rank 1. */
const gradientOf = (row: number, step: number, rank: number, ranks: number): number =>
  ranks * ((row % 7) + step - 2) + 12 * rank;

/** The parameters after all steps at a learning rate of 1. */
const descended = (ranks: number): readonly number[] =>
  Array.from({ length: rows * columns }, (_, i) => {
    let value = 0;
    for (let step = 0; step < steps; step++)
      value -= gradientOf(Math.floor(i / columns), step, 0, ranks) + 6 * (ranks - 1);
    return value;
  });

/** The rows that one rank looks up in a step: a few, other numbers of them on each rank, or in the last step more than a mean would be. */
const lookedUp = (step: number, rank: number): Uint32Array =>
  Uint32Array.from(
    { length: step === steps - 1 ? 2 * rows : 2 + rank },
    (_, i) => (5 * i + 3 * step + rank) % rows,
  );

/** {@link descended} where each row that a rank looks up has a gradient of 1 besides. */
const descendedByRows = (ranks: number): readonly number[] => {
  const values = [...descended(ranks)];
  for (let step = 0; step < steps; step++)
    for (let rank = 0; rank < ranks; rank++)
      for (const row of lookedUp(step, rank))
        for (let i = row * columns; i < (row + 1) * columns; i++)
          values[i] = (values[i] as number) - 1;
  return values;
};

/** What a rank does at present, for those who look for a deadlock. */
interface Position {
  place: string;
}

/** A way of training. */
export interface Mode {
  /** Trains one rank; returns its parameters. */
  readonly train: (carrier: Carrier, position: Position) => Promise<readonly number[]>;
  readonly expected: (ranks: number) => readonly number[];
  /** The largest error of a parameter. Default 0. */
  readonly tolerance?: number;
}

/** Steps are recorded ahead of those before: nothing is read between them. */
const gradients = (
  options: GradientExchangeOptions,
  { tolerance, hasRows = false }: { readonly tolerance?: number; readonly hasRows?: boolean } = {},
): Mode => ({
  expected: hasRows ? descendedByRows : descended,
  ...(tolerance !== undefined && { tolerance }),
  async train(carrier, position) {
    const runtime = cpuRuntime();
    const weight = runtime.variable(new Float32Array(rows * columns), [rows, columns], {
      ...{ requiresGrad: true, name: "weight" },
    });
    const bias = runtime.variable(new Float32Array(4), [4], { requiresGrad: true, name: "bias" });
    const exchange = new GradientExchange(carrier, { buckets: 3, leastBytes: 256, ...options });
    const groups = exchange.shard(runtime, [flatten([weight]), flatten([bias])]);
    const optimizer = new SGD<Storage>(
      runtime.target,
      groups.map((params) => ({ params })),
      { lr: 1 },
    );
    const scaler = new GradScaler(ampPrimitives(runtime), { initScale: 64 });
    for (let step = 0; step < steps; step++) {
      position.place = `records step ${step}`;
      const gradient = Float32Array.from({ length: rows * columns }, (_, i) =>
        gradientOf(Math.floor(i / columns), step, carrier.rank, carrier.size),
      );
      await runtime.step(() => {
        const loss = weight.mul(runtime.tensor(gradient, weight.shape)).sum().add(bias.sum());
        const found = hasRows
          ? embedding(runtime.tensor(lookedUp(step, carrier.rank)), weight)
              .sum()
              .mul(carrier.size)
          : undefined;
        scaler.scale(found ? loss.add(found) : loss).backward();
        exchange.reduce(optimizer, { gradScale: scaler.gradScale() });
        scaler.step(optimizer);
        scaler.update();
        optimizer.zeroGrad();
      });
    }
    position.place = "waits for its steps";
    await runtime.flush();
    position.place = "completes its parameters";
    await exchange.complete();
    position.place = "reads its parameters";
    return [...(await weight.toArray())];
  },
});

const diloco: Mode = {
  // Outer steps along 1.5 and 1.75 times the mean difference of two inner steps, at a learning rate of 0.5.
  expected: (ranks) => [-(0.75 + 0.875) * (ranks + 1)],
  async train(carrier, position) {
    const runtime = cpuRuntime();
    const weight = runtime.variable(new Float32Array(1), [1]);
    const outer = new DiLoCo(carrier, [weight], { innerSteps: 2, lr: 0.5, momentum: 0.5 });
    position.place = "begins";
    await outer.begin();
    for (let step = 1; step <= 4; step++) {
      position.place = `takes step ${step}`;
      await runtime.step(() => weight.assign(weight.sub(1 + carrier.rank)));
      await outer.afterStep({ step });
    }
    position.place = "reads its parameters";
    return [...(await weight.toArray())];
  },
};

/** All ways of training, by name. */
export const modes: Readonly<Record<string, Mode>> = {
  "all-reduce over float32": gradients({ wire: "float32" }),
  "all-reduce over float16": gradients({ wire: "float16" }),
  "all-reduce over bfloat16": gradients({ wire: "bfloat16" }),
  "zero1 over float32": gradients({ mode: "zero1", wire: "float32" }),
  "zero1 over float16": gradients({ mode: "zero1", wire: "float16" }),
  PowerSGD: gradients(
    { wire: "float32", compress: { powerSgd: { rank: 2 } } },
    { tolerance: 1e-3 },
  ),
  "rows over float32": gradients({ wire: "float32" }, { hasRows: true }),
  "rows over float16": gradients({ wire: "float16" }, { hasRows: true }),
  "rows over bfloat16": gradients({ wire: "bfloat16" }, { hasRows: true }),
  "rows over float16 between hosts": gradients({ wire: "auto" }, { hasRows: true }),
  DiLoCo: diloco,
};

/**
 * Trains ranks over a network of this seed, which loses messages where the seed is a multiple of 3; returns how many ranks ended at a
 * deadline.
 *
 * @throws Error for parameters that are wrong, another failure than a deadline, a failure without losses, and ranks that wait forever
 */
export async function trainRandomly(
  { train, expected, tolerance = 0 }: Mode,
  seed: number,
): Promise<number> {
  const hosts = layouts[seed % layouts.length] as readonly string[];
  const loss = seed % 3 === 0 ? 0.005 : 0;
  const positions: Position[] = hosts.map(() => ({ place: "starts" }));
  const carriers = simulated(hosts.length, { seed, hosts, loss, deadline: 1000 });
  const outcomes = await within(
    20_000,
    Promise.allSettled(
      carriers.map(async (carrier, rank) => {
        const position = positions[rank] as Position;
        try {
          return await train(carrier, position);
        } finally {
          position.place = `has ended after it ${position.place}`;
        }
      }),
    ),
    () =>
      positions.map(({ place }, i) => {
        const { collectives } = (carriers[i] as Carrier).traffic;
        return `rank ${i} ${place}, ${collectives} collectives done`;
      }),
  );
  const right = expected(hosts.length);
  let deadlines = 0;
  for (const [rank, outcome] of outcomes.entries())
    if (outcome.status === "fulfilled") {
      const i = right.findIndex(
        (value, i) => !(Math.abs((outcome.value[i] as number) - value) <= tolerance),
      );
      if (i >= 0)
        throw new Error(
          `seed ${seed}, rank ${rank}: parameter ${i} is ${outcome.value[i]} and not ${right[i]}`,
        );
    } else {
      const failure = exchangeErrorOf(outcome.reason);
      if (loss === 0 || failure?.failure !== "deadline")
        throw new Error(`seed ${seed}, rank ${rank} failed`, { cause: outcome.reason });
      deadlines++;
    }
  return deadlines;
}

/** The failed exchange that an error is, or that caused it. */
function exchangeErrorOf(error: unknown): ExchangeError | undefined {
  if (error instanceof ExchangeError) return error;
  return error instanceof Error ? exchangeErrorOf(error.cause) : undefined;
}

/** What a promise gives, or an error that says where ranks wait. */
async function within<T>(
  milliseconds: number,
  promise: Promise<T>,
  places: () => readonly string[],
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end: ${places().join("; ")}`)), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
