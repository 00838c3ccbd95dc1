// Gradients lie in one flat buffer with gaps behind lengths that are no multiple of 4, and the search for infinities reads the
// gaps, too. Kernels that let there what lay in memory before would have steps skipped that are in order.
import { autocast } from "@halfstep/autocast";
import type { Device } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { GradScaler } from "@halfstep/grad-scaler";
import { CRF } from "@halfstep/models";
import {
  BatchNorm2d,
  Conv1d,
  Conv2d,
  ConvTranspose1d,
  ConvTranspose2d,
  Embedding,
  Generator,
  GroupNorm,
  LayerNorm,
  Linear,
  Module,
  PReLU,
  parameter,
  RMSNorm,
} from "@halfstep/nn";
import { AdamW } from "@halfstep/optim";
import {
  ampPrimitives,
  flattenByDType,
  gpuRuntime,
  type Runtime,
  type Tensor,
  type Variable,
} from "@halfstep/tensor";
import { describe, expect, test } from "vitest";

/**
 * The parameters of attention, whose gradients the products of linear layers store. Attention itself stores none of them, and to compile
 * its programs would take longer than everything else here.
 */
class Heads extends Module {
  readonly query: Linear;
  readonly key: Linear;
  readonly value: Linear;
  readonly out: Linear;

  constructor(runtime: Runtime) {
    super();
    const projection = () => new Linear(runtime, 6, 6, { generator });
    [this.query, this.key, this.value] = [projection(), projection(), projection()];
    this.out = projection();
  }

  forward(x: Tensor): Tensor {
    const [query, key, value] = [this.query, this.key, this.value].map((projection) =>
      projection.forward(x).reshape([2, 5, 2, 3]).permute([0, 2, 1, 3]),
    ) as [Tensor, Tensor, Tensor];
    const joined = query.mul(key).add(value).permute([0, 2, 1, 3]).reshape(x.shape);
    return this.out.forward(joined);
  }
}

interface Case {
  readonly make: (runtime: Runtime) => Module;
  /** Shape of the input; of tokens where the values are whole. */
  readonly shape: readonly number[];
  readonly tokens?: number;
  readonly forward?: (module: Module, x: Tensor, runtime: Runtime) => Tensor;
}

const generator = new Generator(3);
const image = [2, 5, 5];
const conv = (from: number, to: number, options: object = {}): Case => ({
  make: (runtime) => new Conv2d(runtime, from, to, { kernelSize: 3, generator, ...options }),
  shape: [...image, from],
});

const cases: Record<string, Case> = {
  linear: { make: (runtime) => new Linear(runtime, 7, 5, { generator }), shape: [9, 7] },
  "linear of one": { make: (runtime) => new Linear(runtime, 1, 1, { generator }), shape: [3, 1] },
  "a deep linear": {
    make: (runtime) => new Linear(runtime, 5, 3, { generator }),
    shape: [1500, 5],
  },
  convolution: conv(3, 5),
  "convolution with stride": conv(5, 7, { stride: 2, padding: 1 }),
  "convolution in groups": conv(9, 3, { groups: 3, padding: 1 }),
  "convolution of each channel": conv(5, 5, { groups: 5, padding: 1 }),
  "convolution of sequences": {
    make: (runtime) => new Conv1d(runtime, 3, 5, { kernelSize: 3, generator }),
    shape: [2, 7, 3],
  },
  "transposed convolution": {
    make: (runtime) => new ConvTranspose2d(runtime, 3, 5, { kernelSize: 3, stride: 2, generator }),
    shape: [...image, 3],
  },
  "transposed convolution of sequences": {
    make: (runtime) => new ConvTranspose1d(runtime, 3, 5, { kernelSize: 2, stride: 2, generator }),
    shape: [2, 7, 3],
  },
  "batch norm": { make: (runtime) => new BatchNorm2d(runtime, 5), shape: [...image, 5] },
  "layer norm": { make: (runtime) => new LayerNorm(runtime, [7]), shape: [9, 7] },
  "RMS norm": { make: (runtime) => new RMSNorm(runtime, [7]), shape: [9, 7] },
  "group norm": { make: (runtime) => new GroupNorm(runtime, 3, 9), shape: [...image, 9] },
  PReLU: { make: (runtime) => new PReLU(runtime, 5), shape: [...image, 5] },
  "PReLU of one": { make: (runtime) => new PReLU(runtime), shape: [9, 7] },
  embedding: {
    make: (runtime) => new Embedding(runtime, 11, 3, { generator }),
    ...{ shape: [4, 5], tokens: 11 },
  },
  "heads of linears": { make: (runtime) => new Heads(runtime), shape: [2, 5, 6] },
  "conditional random field": {
    make: (runtime) => new CRF(runtime, 5, { generator }),
    shape: [3, 4, 5],
    forward: (module, x, runtime) =>
      (module as CRF).forward(
        x,
        runtime.tensor(
          new Uint32Array(12).map((_, i) => i % 5),
          [3, 4],
        ),
      ),
  },
};

/** A parameter of 15 numbers, of which `use` makes the output. */
class Weight extends Module {
  readonly weight: Variable;
  readonly use: (weight: Variable, x: Tensor) => Tensor;

  constructor(runtime: Runtime, use: (weight: Variable, x: Tensor) => Tensor) {
    super();
    this.weight = parameter(
      runtime,
      Float32Array.from({ length: 15 }, (_, i) => i / 15),
      [3, 5],
      "weight",
    );
    this.use = use;
  }

  forward(x: Tensor): Tensor {
    return this.use(this.weight, x);
  }
}

const uses: Readonly<Record<string, (weight: Variable, x: Tensor) => Tensor>> = {
  multiplied: (weight, x) => weight.mul(x.mul(2)),
  "used twice": (weight, x) => weight.mul(x.mul(2)).add(weight.exp().mul(x)),
  transposed: (weight, x) => weight.transpose(0, 1).mul(x.transpose(0, 1)),
  sliced: (weight, x) =>
    weight.slice(1, { start: 1, end: 4 }).mul(x.slice(1, { start: 0, end: 3 })),
  reshaped: (weight, x) => weight.reshape([5, 3]).mul(x.reshape([5, 3])),
  broadcast: (weight, x) => weight.reshape([3, 1, 5]).mul(x.reshape([3, 5, 1])),
};

for (const [name, use] of Object.entries(uses))
  cases[`a weight that is ${name}`] = {
    make: (runtime) => new Weight(runtime, use),
    shape: [3, 5],
  };

/** Fills memory that a runtime is handed next with the bits of NaN, of float32 and of halves. */
function poison(device: Device): void {
  const sizes = Array.from({ length: 256 }, (_, i) => 256 * (i + 1)).flatMap((bytes) => [
    bytes,
    bytes,
    bytes,
  ]);
  const buffers = [...sizes, ...[1, 2, 4, 8].map((power) => power * 65_536)].map((bytes) => {
    const buffer = device.allocate(bytes);
    device.write(buffer, 0, new Uint32Array(bytes / 4).fill(0x7fff_7fff));
    return buffer;
  });
  for (const buffer of buffers) device.release(buffer);
}

// The packed tier is for a lane, because a module takes its compiler a second.
const tiers = (await testTiers()).slice(0, process.env.HALFSTEP_LANE_TESTS ? undefined : 1);

describe.each(tiers)("gaps of gradients on the GPU, %s tier", (tier) => {
  test.each(Object.keys(cases))("%s", async (name) => {
    const { make, shape, tokens, forward } = cases[name] as Case;
    const device = await requestTestDevice({ tier });
    poison(device);
    const runtime = gpuRuntime(device);
    const model = make(runtime);
    const optimizer = new AdamW(
      runtime.target,
      flattenByDType(model.parameters()).map((params) => ({ params })),
      { lr: 1e-3 },
    );
    const scaler = new GradScaler(ampPrimitives(runtime), {
      initScale: 16,
      outcomeSchedule: false,
    });
    const count = shape.reduce((product, size) => product * size, 1);
    const input = tokens
      ? Uint32Array.from({ length: count }, (_, i) => (3 * i) % tokens)
      : Float32Array.from({ length: count }, (_, i) => Math.sin(i));
    for (let step = 0; step < 4; step++) {
      using _ = await runtime.step(() => {
        const loss = autocast({ dtype: "float16" }, () => {
          const x = runtime.tensor(input, shape);
          const y = forward
            ? forward(model, x, runtime)
            : (model as Module & { forward(x: Tensor): Tensor }).forward(x).square().mean();
          return y;
        });
        scaler.scale(loss).backward();
        scaler.step(optimizer);
        scaler.update();
        optimizer.zeroGrad();
        return loss;
      });
    }
    expect((await scaler.drain()).map(({ status }) => status)).toEqual(Array(4).fill("applied"));
  });
});
