import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { describe, expect, test } from "vitest";
import {
  batchNorm,
  checkpoint,
  cpuRuntime,
  crossEntropy,
  Generator,
  gpuRuntime,
  grad,
  linear,
  noGrad,
  type Plan,
  type Runtime,
  type Tensor,
  type Variable,
} from "../src/index.js";

const width = 16;
const rows = 12;

const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + 1.7 * i));

type Apply = <A extends readonly unknown[], R>(fn: (...inputs: A) => R, ...inputs: A) => R;
const plainly: Apply = (fn, ...inputs) => fn(...inputs);

/** Residual blocks with every feature that a recomputation could get wrong. */
function makeNetwork(runtime: Runtime, blocks = 4) {
  const parameter = (name: string, shape: readonly number[], seed: number): Variable => {
    const size = shape.reduce((a, b) => a * b, 1);
    const values = numbers(size, seed).map((value) => value / Math.sqrt(shape.at(-1) as number));
    return runtime.variable(values, shape, { requiresGrad: true, name });
  };
  const generator = new Generator(5);
  const running = {
    mean: runtime.variable(new Float32Array(width), [width]),
    variance: runtime.variable(new Float32Array(width).fill(1), [width]),
  };
  const layers = Array.from({ length: blocks }, (_, i) => ({
    up: parameter(`up${i}`, [4 * width, width], i),
    bias: parameter(`bias${i}`, [4 * width], i + 0.3),
    down: parameter(`down${i}`, [width, 4 * width], i + 0.7),
  }));
  const gain = parameter("gain", [width], 9);
  const shift = parameter("shift", [width], 10);
  // Tied: the blocks and the head use it.
  const tied = parameter("tied", [width, width], 11);
  const block = (x: Tensor, layer: (typeof layers)[number]): { y: Tensor; extra: Tensor } => {
    const hidden = linear(x, layer.up, layer.bias).gelu().dropout({ p: 0.25, generator });
    const { output } = batchNorm(x, gain, shift, { running });
    // A random choice on the host, as in stochastic depth.
    const branch = generator.uniform() < 0.5 ? linear(hidden, layer.down) : output;
    return { y: x.add(branch).add(linear(output, tied).tanh()), extra: hidden.mean() };
  };
  const forward = (apply: Apply, input: Tensor, hasExtras = true): Tensor => {
    const extras: Tensor[] = [];
    let x = input;
    for (const layer of layers) {
      const { y, extra } = apply((each: Tensor) => block(each, layer), x);
      x = y;
      if (hasExtras) extras.push(extra);
    }
    const logits = linear(x, tied);
    const labels = runtime.tensor(Uint32Array.from({ length: rows }, (_, i) => i));
    return extras.reduce((loss, extra) => loss.add(extra), crossEntropy(logits, labels));
  };
  const parameters = [...layers.flatMap((layer) => Object.values(layer)), gain, shift, tied];
  return { generator, running, parameters, forward };
}

interface Outcome {
  readonly bits: string;
  readonly plan: Plan;
  readonly offset: number;
}

/** Two training steps; returns all resulting bits. */
async function train(
  runtime: Runtime,
  apply: Apply,
  dtype: "float16" | "bfloat16" | undefined,
): Promise<Outcome> {
  const { generator, running, parameters, forward } = makeNetwork(runtime);
  const input = runtime.tensor(numbers(rows * width, 3), [rows, width], { requiresGrad: true });
  const left: Tensor[] = [running.mean, running.variance, ...parameters];
  for (let step = 0; step < 2; step++)
    left.push(
      await runtime.step(() => {
        const loss = dtype
          ? autocast({ dtype }, () => forward(apply, input))
          : forward(apply, input);
        loss.backward();
        for (const p of parameters) if (p.grad) p.assign(p.sub(p.grad.mul(0.05)));
        if (step === 0) for (const p of parameters) p.zeroGrad();
        return loss;
      }),
    );
  // Branches that were dropped at random have no gradients.
  left.push(...[...parameters, input].flatMap(({ grad: gradient }) => gradient ?? []));
  const arrays = await Promise.all(left.map((tensor) => tensor.toArray()));
  return {
    bits: Buffer.concat(arrays.map(({ buffer }) => new Uint8Array(buffer))).toString("hex"),
    plan: runtime.lastPlan as Plan,
    offset: generator.offset,
  };
}

const nested: Apply = (fn, ...inputs) =>
  checkpoint((...outer) => checkpoint((...inner) => checkpoint(fn, ...inner), ...outer), ...inputs);

describe("checkpoint() changes no bit of a training step", () => {
  test.each([undefined, "float16", "bfloat16"] as const)("under autocast of %s", async (dtype) => {
    const plain = await train(cpuRuntime(), plainly, dtype);
    for (const apply of [checkpoint, nested]) {
      const { bits, offset } = await train(cpuRuntime(), apply, dtype);
      expect(bits === plain.bits).toBe(true);
      expect(offset).toBe(plain.offset);
    }
    const unplanned = await train(cpuRuntime({ passes: [] }), checkpoint, dtype);
    expect(unplanned.bits === plain.bits).toBe(true);
  });

  test("on a GPU", async () => {
    const runtime = gpuRuntime(await requestTestDevice());
    const w = runtime.variable(numbers(width * width, 1), [width, width], { requiresGrad: true });
    const x = runtime.tensor(numbers(rows * width, 2), [rows, width]);
    const gradients = async (apply: Apply): Promise<readonly number[]> => {
      const generator = new Generator(1);
      const block = (y: Tensor): Tensor => linear(y, w).relu().dropout({ generator });
      await runtime.step(() => {
        w.zeroGrad();
        autocast({ dtype: "float16" }, () => apply(block, apply(block, x)).mean()).backward();
      });
      return [...(await (w.grad as Variable).toArray())];
    };
    const plain = await gradients(plainly);
    expect(plain.some((value) => value !== 0)).toBe(true);
    expect(await gradients(checkpoint)).toEqual(plain);
  });
});

test("memory is that of a block and of what lies between blocks", () => {
  const planOf = (blocks: number, apply: Apply): Plan => {
    const runtime = cpuRuntime();
    const { forward } = makeNetwork(runtime, blocks);
    const input = runtime.zeros([rows, width], { requiresGrad: true });
    return runtime.plan(() => {
      const loss = autocast({ dtype: "float16" }, () => forward(apply, input, false));
      loss.backward();
      return loss;
    });
  };
  const held = (apply: Apply): number => {
    const [few, many] = [planOf(4, apply), planOf(12, apply)];
    return many.statistics.activationBytes - few.statistics.activationBytes;
  };
  // Each further block keeps only its result, float32 [rows, width].
  expect(held(checkpoint)).toBe(8 * rows * width * 4);
  expect(held(plainly)).toBeGreaterThan(3 * held(checkpoint));
  const [kept, recomputed] = [planOf(12, plainly), planOf(12, checkpoint)];
  expect(recomputed.statistics.peakBytes).toBeLessThan(0.5 * kept.statistics.peakBytes);
  expect(recomputed.statistics.casts).toBe(0);
  expect(recomputed.launches.length).toBeGreaterThan(kept.launches.length);
});

test("a backward pass may come twice, in later steps too, and what is computed again is not kept", async () => {
  const results = await Promise.all(
    [plainly, checkpoint].map(async (apply) => {
      const runtime = cpuRuntime();
      const { forward, parameters } = makeNetwork(runtime);
      const input = runtime.tensor(numbers(rows * width, 3), [rows, width]);
      const loss = await runtime.step(() => forward(apply, input), { keepGraph: true });
      const kept = runtime.lastPlan?.kept.length as number;
      await runtime.step(() => loss.backward({ retainGraph: true }));
      await runtime.step(() => loss.backward());
      const gradients = await Promise.all(parameters.map((p) => p.grad?.toArray()));
      return { kept, gradients };
    }),
  );
  const [plain, recomputed] = results as [(typeof results)[0], (typeof results)[0]];
  expect(recomputed.gradients).toEqual(plain.gradients);
  expect(plain.gradients.flatMap((g) => [...(g ?? [])]).some((value) => value !== 0)).toBe(true);
  expect(recomputed.kept).toBeLessThan(plain.kept / 2);
});

test("gradients of gradients flow through it", async () => {
  const second = async (apply: Apply): Promise<number[]> => {
    const runtime = cpuRuntime();
    const w = runtime.variable(numbers(9, 1), [3, 3], { requiresGrad: true });
    const x = runtime.variable(numbers(6, 2), [2, 3], { requiresGrad: true });
    const y = await runtime.step(() => {
      const loss = apply(
        (each: Tensor) => apply((e: Tensor) => linear(e, w).tanh(), each).square(),
        x,
      );
      const [dx] = grad(loss.sum(), [x], { createGraph: true }) as [Tensor];
      return grad(dx.square().sum(), [w, x]) as [Tensor, Tensor];
    });
    return (await Promise.all(y.map((each) => each.toArray()))).flatMap((each) => [...each]);
  };
  // Gradients of one tensor are added in another order.
  const [expected, computed] = [await second(plainly), await second(checkpoint)];
  const errors = computed.map((value, i) => Math.abs(value / (expected[i] as number) - 1));
  expect(errors.length).toBe(15);
  expect(Math.max(...errors)).toBeLessThan(1e-5);
});

test("it works outside steps, and without gradients it is a call", async () => {
  const runtime = cpuRuntime();
  const w = runtime.variable([2, 3], [2], { requiresGrad: true });
  const y = checkpoint((x: Tensor) => x.mul(w).square(), w);
  y.sum().backward();
  expect([...(await (w.grad as Variable).toArray())]).toEqual([4 * 8, 4 * 27]);
  let calls = 0;
  const count = (x: Tensor): Tensor => {
    calls++;
    return x.mul(2);
  };
  expect([...(await noGrad(() => checkpoint(count, w)).toArray())]).toEqual([4, 6]);
  expect(calls).toBe(1);
});

describe("it is refused", () => {
  const open = (): { runtime: Runtime; w: Variable } => {
    const runtime = cpuRuntime();
    return { runtime, w: runtime.variable([2], [1], { requiresGrad: true, name: "w" }) };
  };

  test("without a tensor to start from, and for functions that return promises", () => {
    const { w } = open();
    expect(() => checkpoint(() => w.mul(2))).toThrow("needs a tensor among its inputs");
    expect(() => checkpoint(async (x: Tensor) => x, w)).toThrow("synchronous");
  });

  test("where the function does something else when it is called again", async () => {
    const { runtime, w } = open();
    let calls = 0;
    const fickle = (x: Tensor): Tensor => (calls++ === 0 ? x.mul(w) : x.add(w));
    const step = runtime.step(() => checkpoint(fickle, w).backward());
    await expect(step).rejects.toThrow("did add [float32 1] where it had done mul [float32 1]");
    calls = 0;
    const shorter = (x: Tensor): Tensor => (calls++ === 0 ? x.mul(w).mul(w) : x.mul(w));
    const again = runtime.step(() => checkpoint(shorter, w).backward());
    await expect(again).rejects.toThrow("did nothing where it had done mul");
  });

  test("where a variable was assigned that it needs again", async () => {
    const { runtime, w } = open();
    const step = runtime.step(() => {
      const y = checkpoint((x: Tensor) => x.mul(3).mul(w), w.mul(1));
      w.assign(w.mul(0.5));
      y.backward();
    });
    await expect(step).rejects.toThrow("w was assigned after the function read it");
    expect(await w.item()).toBe(2);
  });
});
