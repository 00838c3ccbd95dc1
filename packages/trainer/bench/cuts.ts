import { autocast } from "@halfstep/autocast";
import { requestDevice } from "@halfstep/device/node";
import { GradScaler } from "@halfstep/grad-scaler";
import { GPT } from "@halfstep/models";
import { AdamW } from "@halfstep/optim";
import {
  ampPrimitives,
  crossEntropy,
  defineHostOp,
  flatten,
  gpuRuntime,
  type HostFunction,
  hostLaunch,
} from "@halfstep/tensor";

// Measures what cuts cost: a float16 training step of a GPT, whole, and with its gradients carried to the host and back in parts. The
// function of the host returns at once, as an exchange without peers would. The kinds of step take turns.

const [batch, tokens, vocabulary, rounds] = [8, 256, 65, 15];

const device = await requestDevice();

const cuts = (parts: number) =>
  defineHostOp({
    name: "cut",
    bindings: [{ name: "gradients", access: "readwrite" }],
    division: {
      ...{ parts, leastBytes: 2 ** 16 },
      carry: (binding) => ({
        before: [],
        operands: [{ binding, role: { name: "gradients", access: "readwrite" } }],
        after: [],
      }),
    },
  });
const nothing: HostFunction = async () => {};

function training(parts: number) {
  const runtime = gpuRuntime(device);
  const model = new GPT(runtime, {
    ...{ seed: 0, vocabSize: vocabulary, blockSize: tokens },
    ...{ nLayer: 6, nHead: 3, nEmbd: 192, dropout: 0 },
  });
  const params = flatten(model.parameters());
  const optimizer = new AdamW(runtime.target, params, { lr: 1e-4 });
  const scaler = new GradScaler(ampPrimitives(runtime), { outcomeSchedule: false });
  const op = cuts(parts);
  const x = runtime.tensor(new Uint32Array(batch * tokens), [batch, tokens]);
  const labels = runtime.tensor(new Uint32Array(batch * tokens));
  return {
    runtime,
    step: () =>
      runtime.step(() => {
        const loss = autocast({ dtype: "float16" }, () =>
          crossEntropy(model.forward(x).reshape([batch * tokens, vocabulary]), labels),
        );
        scaler.scale(loss).backward();
        if (parts > 0)
          for (const { buffer, offset, length } of optimizer.gradients())
            runtime.target.launch(
              hostLaunch(op, [{ buffer, offset, length, dtype: "float32" }], nothing),
            );
        scaler.step(optimizer);
        scaler.update();
        optimizer.zeroGrad();
      }),
  };
}

/** Milliseconds of a step: on the clock, and of all threads, those of a software driver included. */
interface Cost {
  readonly wall: number;
  readonly cpu: number;
}

const kinds = [0, 5].map((parts) => ({ parts, ...training(parts), times: [] as Cost[] }));
for (let round = -1; round < rounds; round++)
  for (const { runtime, step, times } of kinds) {
    const [start, before] = [performance.now(), process.cpuUsage()];
    await step();
    await runtime.flush();
    await device.settled();
    const { user, system } = process.cpuUsage(before);
    const wall = performance.now() - start;
    if (round >= 0) times.push({ wall, cpu: (user + system) / 1000 });
  }

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;
const whole = kinds[0]?.times ?? [];
for (const { parts, times, runtime } of kinds) {
  const costs = (["wall", "cpu"] as const).map((kind) => {
    const ratio = median(times.map((time, i) => time[kind] / (whole[i]?.[kind] ?? 1)));
    const more = ((ratio - 1) * 100).toFixed(1);
    return `${median(times.map((time) => time[kind])).toFixed(1)} ms ${kind}, ${more} % more`;
  });
  const cuts = runtime.lastPlan?.hostOps.length;
  console.log(`${cuts} cuts (at most ${parts} asked for): ${costs.join("; ")}`);
}
device.destroy();
