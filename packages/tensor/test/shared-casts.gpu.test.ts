import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { describe, expect, test } from "vitest";
import {
  checkpoint,
  cpuRuntime,
  crossEntropy,
  flatten,
  gpuRuntime,
  grad,
  linear,
  type Runtime,
  type Tensor,
  type Variable,
} from "../src/index.js";

// Several graphs in one recording share autocast's casts of the parameters. Each of them can be differentiated, in any
// order.

const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + 1.7 * i) / 2);

type Call = (fn: (x: Tensor) => Tensor, x: Tensor) => Tensor;

interface Network {
  readonly parameters: readonly Variable[];
  loss(batch: number, call?: Call): Tensor;
}

const rows = 4;
const width = 6;

function makeNetwork(runtime: Runtime, dtype: "float16" | "bfloat16"): Network {
  const parameter = (shape: readonly number[], seed: number): Variable =>
    runtime.variable(numbers(shape[0] as number, seed), shape, { requiresGrad: true });
  const matrix = (seed: number): Variable =>
    runtime.variable(numbers(width * width, seed), [width, width], { requiresGrad: true });
  const [first, second, bias] = [matrix(1), matrix(2), parameter([width], 3)];
  const parameters = [first, second, bias];
  return {
    parameters,
    loss: (batch, call = (fn, x) => fn(x)) => {
      const x = runtime.tensor(numbers(rows * width, 10 + batch), [rows, width]);
      const labels = runtime.tensor(Uint32Array.from({ length: rows }, (_, i) => (i + batch) % 6));
      const hidden = (given: Tensor): Tensor =>
        linear(linear(given, first, bias).tanh(), second, bias);
      return autocast({ dtype }, () => crossEntropy(linear(call(hidden, x), first), labels));
    },
  };
}

type Order = (network: Network) => void;

const inCheckpoint: Call = (fn, x) => checkpoint(fn, x);

const orders: Readonly<Record<string, Order>> = {
  "forward, backward, forward, backward": ({ loss }) => {
    loss(0).backward();
    loss(1).backward();
  },
  "forward, forward, backward, backward": ({ loss }) => {
    const losses = [loss(0), loss(1)];
    for (const each of losses) each.backward();
  },
  "the same inside checkpoint()": ({ loss }) => {
    loss(0, inCheckpoint).backward();
    loss(1, inCheckpoint).backward();
  },
  "forward, forward, backward, backward inside checkpoint()": ({ loss }) => {
    const losses = [loss(0, inCheckpoint), loss(1, inCheckpoint)];
    for (const each of losses) each.backward();
  },
  "one of two inside checkpoint()": ({ loss }) => {
    const losses = [loss(0, inCheckpoint), loss(1)];
    for (const each of losses) each.backward();
  },
  "grad() before backward()": ({ loss, parameters }) => {
    grad(loss(5), parameters);
    const losses = [loss(0), loss(1)];
    grad(losses[0] as Tensor, parameters, { retainGraph: true });
    for (const each of losses) each.backward();
  },
};

/**
 * All bits of the gradients after three steps, between which parameters change; the last steps read their half copies.
 */
async function gradientsAfter(
  runtime: Runtime,
  dtype: "float16" | "bfloat16",
  order: Order | "in steps of their own",
): Promise<string> {
  const network = makeNetwork(runtime, dtype);
  const { parameters } = network;
  flatten(parameters);
  const bits: Uint8Array[] = [];
  for (let round = 0; round < 3; round++) {
    const batches = order === "in steps of their own" ? [0, 1] : [undefined];
    for (const batch of batches)
      await runtime.step(() => {
        if (batch !== undefined) network.loss(batch).backward();
        else (order as Order)(network);
        return undefined;
      });
    for (const { grad: gradient } of parameters)
      bits.push(new Uint8Array((await (gradient as Tensor).toArray()).buffer));
    await runtime.step(() => {
      for (const p of parameters) {
        if (round === 0) p.assign(p.sub((p.grad as Tensor).mul(0.05)));
        p.zeroGrad();
      }
      return undefined;
    });
  }
  return Buffer.concat(bits).toString("hex");
}

describe.each(["float16", "bfloat16"] as const)("two graphs of one recording, in %s", (dtype) => {
  test.each(Object.keys(orders))("on the CPU: %s", async (name) => {
    const apart = await gradientsAfter(cpuRuntime(), dtype, "in steps of their own");
    expect(await gradientsAfter(cpuRuntime(), dtype, orders[name] as Order)).toBe(apart);
  });
});

test("two graphs of one recording on the GPU", async () => {
  const runtime = gpuRuntime(await requestTestDevice());
  const apart = await gradientsAfter(runtime, "float16", "in steps of their own");
  for (const [name, order] of Object.entries(orders))
    expect([name, await gradientsAfter(runtime, "float16", order)]).toEqual([name, apart]);
});

describe("graphs that share casts", () => {
  const read = async (tensor: Tensor | undefined): Promise<number[]> => [
    ...((await tensor?.toArray()) ?? []),
  ];
  const scalar = (runtime: Runtime, value: number): Variable =>
    runtime.variable([value], [1, 1], { requiresGrad: true });

  test("a GAN's two losses in one step", async () => {
    const runtime = cpuRuntime();
    const [g, d] = [scalar(runtime, 3), scalar(runtime, 5)];
    await runtime.step(() => {
      const [real, noise] = [runtime.tensor([2], [1, 1]), runtime.tensor([7], [1, 1])];
      autocast({ dtype: "float16" }, () => {
        const fake = linear(noise, g);
        linear(real, d).add(linear(fake.detach(), d)).sum().backward();
        const ofGenerator = linear(fake, d).sum();
        ofGenerator.backward();
      });
      return undefined;
    });
    expect([await read(d.grad), await read(g.grad)]).toEqual([[2 + 21 + 21], [35]]);
  });

  test("in later steps, one after the other", async () => {
    const runtime = cpuRuntime();
    const w = scalar(runtime, 3);
    let hidden: Tensor | undefined;
    const losses = await runtime.step(
      () =>
        autocast({ dtype: "float16" }, () => {
          const x = runtime.tensor([2], [1, 1]);
          hidden = linear(x, w);
          return [linear(hidden, w).sum(), linear(x, w).sum()] as const;
        }),
      { keepGraph: true },
    );
    for (const loss of losses) {
      await expect(
        runtime.step(() => {
          loss.backward();
          throw new Error("dropped");
        }),
      ).rejects.toThrow("dropped");
      await runtime.step(() => {
        loss.backward();
        return undefined;
      });
    }
    expect(await read(w.grad)).toEqual([12 + 2]);
    expect(hidden?.storage.isResident).toBe(false);
  });

  test("what is asked to be kept stays when the graph that needed it is gone", async () => {
    const runtime = cpuRuntime();
    const w = scalar(runtime, 3);
    let square: Tensor | undefined;
    const loss = await runtime.step(
      () => {
        square = w.square();
        return square.square().sum();
      },
      { keepGraph: true },
    );
    square?.keep();
    await runtime.step(() => {
      loss.backward();
      return undefined;
    });
    expect(await read(square)).toEqual([9]);
  });

  test("casts and views that a program makes itself", async () => {
    const runtime = cpuRuntime();
    const w = scalar(runtime, 3);
    const shared = w.to("bfloat16").reshape([1]).to("float32");
    shared.square().sum().backward();
    shared.mul(2).sum().backward();
    expect(await read(w.grad)).toEqual([6 + 2]);
  });

  test("gradients of gradients", async () => {
    const runtime = cpuRuntime();
    const w = scalar(runtime, 3);
    await runtime.step(() => {
      for (let i = 0; i < 2; i++) {
        const loss = autocast({ dtype: "float16" }, () => linear(linear(w, w), w).sum());
        const [first] = grad(loss, [w], { createGraph: true });
        (first as Tensor).square().sum().backward();
      }
      return undefined;
    });
    // The loss is w³, the square of its derivative 9 w⁴, and the derivative of that 36 w³.
    expect(await read(w.grad)).toEqual([2 * 36 * 27]);
  });
});
