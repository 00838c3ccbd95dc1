// One rank of the scaling measurement: node scaling-rank.js TASKS. Rank 0 prints lines of JSON.
import { setTimeout as wait } from "node:timers/promises";
import { Exchange, GradientExchange } from "@halfstep/distributed";
import { init } from "@halfstep/distributed/node";
import { SGD } from "@halfstep/optim";
import { flatten, type Runtime } from "@halfstep/tensor";
import { openRuntime } from "../../src/cli/open-runtime.js";
import { type Call, emptyCarrier, notingCarrier } from "./carriers.js";
import { builds } from "./models.js";
import { StallMeter } from "./stalls.js";
import type {
  CallTimes,
  LargeTask,
  LinkTask,
  MeasuredLarge,
  MeasuredLink,
  MeasuredSteps,
  RankLine,
  ScalingTask,
  StepsTask,
  TurnsTask,
} from "./tasks.js";

const tasks: readonly ScalingTask[] = JSON.parse(process.argv[2] ?? "[]");

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;

const mean = (values: readonly number[]): number =>
  values.reduce((a, b) => a + b, 0) / values.length;

const carrier = await init({ deadline: 120_000 });
const print = (line: RankLine): void => {
  if (carrier.rank === 0) console.log(JSON.stringify(line));
};

/** Time for the measuring program to read the counters of links. */
async function mark(name: string): Promise<void> {
  await carrier.barrier();
  print({ mark: name });
  await wait(300);
  await carrier.barrier();
}

let runtime: Runtime | undefined;

/** Training whose steps are measured. */
interface MeasuredTraining {
  /** Takes a step that is not measured. */
  step(): Promise<void>;
  /** Takes the steps of the task, and notes when each bucket was ready, and what the host did with it. */
  measure(): Promise<MeasuredSteps>;
}

/** Undefined where another rank trains alone. */
async function open(task: StepsTask): Promise<MeasuredTraining | undefined> {
  const { batch, buckets, leastBytes = 2 ** 16, wire, peers } = task;
  if (peers === "alone" && carrier.rank !== 0) return undefined;
  runtime ??= (await openRuntime({ device: "gpu" })).runtime;
  const own = runtime;
  const training = builds[task.model ?? "mlp"](own, batch);
  const parameters = flatten(training.model.parameters());
  const optimizer = new SGD(own.target, parameters, { lr: 0.01 });
  let calls: Call[] = [];
  const carriers = { empty: emptyCarrier(), job: carrier };
  const peersOf = peers === "empty" || peers === "job" ? carriers[peers] : undefined;
  const exchange =
    peersOf &&
    new GradientExchange(
      notingCarrier(peersOf, (call) => calls.push(call)),
      { wire, buckets, leastBytes },
    );
  const step = async (): Promise<void> => {
    const loss = await own.step(() => {
      const loss = training.loss();
      if (task.isForward) return loss;
      loss.backward();
      exchange?.reduce(optimizer);
      optimizer.step();
      optimizer.zeroGrad();
      return loss;
    });
    await loss.item();
    loss.dispose();
    if (peers === "lockstep") await carrier.barrier();
  };
  return {
    step,
    async measure() {
      const stalls = new StallMeter();
      const { bytes } = carrier.traffic;
      const times: number[] = [];
      const seen: SeenStep[] = [];
      for (let i = 0; i < task.steps; i++) {
        calls = [];
        const startedAt = performance.now();
        await step();
        times.push(performance.now() - startedAt);
        seen.push({ startedAt, calls });
      }
      return {
        task,
        step: median(times),
        stall: stalls.stop(),
        bytes: (carrier.traffic.bytes - bytes) / task.steps,
        calls: averageCalls(seen),
      };
    },
  };
}

async function measureSteps(task: StepsTask): Promise<MeasuredSteps | undefined> {
  const training = await open(task);
  for (let i = 0; i < 5; i++) await training?.step();
  await mark(`${task.peers} ${task.wire} ${task.buckets}`);
  const measured = await training?.measure();
  await mark("end");
  return measured;
}

/** The fastest measurement of each task: see {@link TurnsTask}. */
async function measureInTurn({ tasks, rounds }: TurnsTask): Promise<MeasuredSteps[]> {
  const trainings: (MeasuredTraining | undefined)[] = [];
  for (const task of tasks) {
    const training = await open(task);
    trainings.push(training);
    for (let i = 0; i < 5; i++) await training?.step();
  }
  const fastest: MeasuredSteps[] = [];
  for (let round = 0; round < rounds; round++)
    for (const [i, training] of trainings.entries()) {
      await carrier.barrier();
      await training?.step();
      const measured = await training?.measure();
      if (measured && !(measured.step > (fastest[i]?.step ?? Number.POSITIVE_INFINITY)))
        fastest[i] = measured;
    }
  await carrier.barrier();
  return fastest;
}

interface SeenStep {
  readonly startedAt: number;
  readonly calls: readonly Call[];
}

/** The collectives of the steps, which are the same in each. */
const averageCalls = (seen: readonly SeenStep[]): CallTimes[] =>
  (seen[0]?.calls ?? []).map(({ label, bytes }, c, calls) => ({
    begin: mean(seen.map((step) => (step.calls[c] as Call).begin - step.startedAt)),
    bytes,
    isSecond: calls[c - 1]?.label === label,
  }));

/** By the fastest of some collectives: other work on the machine only delays them. */
async function measureLink({ kind, bytes }: LinkTask): Promise<MeasuredLink> {
  const timeOf = async (size: number, times: number): Promise<number> => {
    const send = carrier.allocate(size * carrier.size);
    const receive = carrier.allocate(send.length);
    const taken: number[] = [];
    for (let i = 0; i < times; i++) {
      await carrier.barrier();
      const startedAt = performance.now();
      await carrier.allToAll(send, receive);
      taken.push(performance.now() - startedAt);
    }
    return Math.min(...taken);
  };
  const latency = await timeOf(8, 21);
  // Buffers of the system take the beginning of a message at once, so two large sizes are compared.
  const sent = Math.ceil(bytes / (carrier.size - 1));
  const longer = (await timeOf(2 * sent, 4)) - (await timeOf(sent, 4));
  const bytesPerMs = (sent * (carrier.size - 1)) / longer;
  return { task: { kind, bytes }, ranks: carrier.size, latency, bytesPerMs };
}

/** The median of three means. */
async function measureLarge(task: LargeTask): Promise<MeasuredLarge> {
  const exchange = new Exchange(carrier, { wire: task.wire });
  const values = new Float32Array(task.wire === "float32" ? task.numbers : 0).fill(1);
  const codes = new Uint16Array(task.wire === "float32" ? 0 : task.numbers).fill(0x3c00);
  const taken: number[] = [];
  const stalls = new StallMeter();
  for (let i = 0; i < 3; i++) {
    await carrier.barrier();
    const startedAt = performance.now();
    if (task.wire === "float32") await exchange.mean(values);
    else await exchange.meanOfCodes(codes, 0);
    taken.push(performance.now() - startedAt);
  }
  return { task, milliseconds: median(taken), stall: stalls.stop() };
}

for (const task of tasks) {
  if (task.kind === "link") print(await measureLink(task));
  else if (task.kind === "large") print(await measureLarge(task));
  else if (task.kind === "turns") for (const each of await measureInTurn(task)) print(each);
  else {
    const measured = await measureSteps(task);
    if (measured) print(measured);
  }
}
await carrier.close();
