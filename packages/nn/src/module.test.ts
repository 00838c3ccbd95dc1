import { cpuRuntime, type Runtime, type Tensor, type Variable } from "@halfstep/tensor";
import { expect, test } from "vitest";
import {
  BatchNorm2d,
  buffer,
  Conv2d,
  Flatten,
  Generator,
  Linear,
  Module,
  parameter,
  ReLU,
  Sequential,
} from "./index.js";

class Block extends Module {
  readonly conv: Conv2d;
  readonly bn: BatchNorm2d;
  constructor(runtime: Runtime, generator: Generator) {
    super();
    this.conv = new Conv2d(runtime, 2, 2, { kernelSize: 1, generator });
    this.bn = new BatchNorm2d(runtime, 2);
  }
  forward(x: Tensor): Tensor {
    return this.bn.forward(this.conv.forward(x)).relu();
  }
}

class Net extends Module {
  readonly scale: Variable;
  readonly steps: Variable;
  readonly blocks: readonly Block[];
  readonly head: Sequential;
  readonly #hidden: Linear;
  constructor(runtime: Runtime, seed = 1) {
    super();
    const generator = new Generator(seed);
    this.scale = parameter(runtime, [1], []);
    this.steps = buffer(runtime, [0], []);
    this.blocks = [new Block(runtime, generator), new Block(runtime, generator)];
    this.head = new Sequential(
      new Flatten(),
      new Linear(runtime, 8, 3, { generator }),
      new ReLU(),
      new Linear(runtime, 3, 1, { bias: false, generator }),
    );
    this.#hidden = new Linear(runtime, 1, 1, { generator });
  }
  get hidden(): Linear {
    return this.#hidden;
  }
  forward(x: Tensor): Tensor {
    const features = this.blocks.reduce((value, block) => block.forward(value), x);
    return this.head.forward(features).mul(this.scale);
  }
}

const parameterPaths = [
  "scale",
  "blocks.0.conv.weight",
  "blocks.0.conv.bias",
  "blocks.0.bn.weight",
  "blocks.0.bn.bias",
  "blocks.1.conv.weight",
  "blocks.1.conv.bias",
  "blocks.1.bn.weight",
  "blocks.1.bn.bias",
  "head.1.weight",
  "head.1.bias",
  "head.3.weight",
];

test("parameters, buffers and modules have torch's paths", () => {
  const net = new Net(cpuRuntime());
  expect([...net.namedParameters()].map(([path]) => path)).toEqual(parameterPaths);
  expect([...net.namedBuffers()].map(([path]) => path)).toEqual([
    "steps",
    "blocks.0.bn.runningMean",
    "blocks.0.bn.runningVar",
    "blocks.1.bn.runningMean",
    "blocks.1.bn.runningVar",
  ]);
  expect([...net.namedModules()].map(([path]) => path)).toEqual([
    "",
    "blocks.0",
    "blocks.0.conv",
    "blocks.0.bn",
    "blocks.1",
    "blocks.1.conv",
    "blocks.1.bn",
    "head",
    "head.0",
    "head.1",
    "head.2",
    "head.3",
  ]);
  expect([...net.namedChildren()].map(([name]) => name)).toEqual(["blocks.0", "blocks.1", "head"]);
  expect([...net.parameters()].every(({ requiresGrad }) => requiresGrad)).toBe(true);
  expect([...net.namedBuffers()].some(([, { requiresGrad }]) => requiresGrad)).toBe(false);
});

test("variables are named by their path in the whole model, whoever lists them", () => {
  const net = new Net(cpuRuntime());
  expect([...net.parameters()].map(({ name }) => name)).toEqual(parameterPaths);
  const [first] = net.blocks;
  const listed = [...(first as Block).namedParameters()];
  expect(listed.map(([path]) => path)).toEqual([
    "conv.weight",
    "conv.bias",
    "bn.weight",
    "bn.bias",
  ]);
  expect(listed.map(([, { name }]) => name)).toEqual(parameterPaths.slice(1, 5));
  expect((first as Block).bn.path).toBe("blocks.0.bn");
  expect(net.hidden.path).toBe("");
});

test("a frozen parameter stays a parameter", () => {
  const net = new Net(cpuRuntime());
  net.scale.requiresGrad = false;
  expect([...net.namedParameters()].map(([path]) => path)).toEqual(parameterPaths);
});

test("a module or variable that appears twice is listed once, under its first path", async () => {
  const runtime = cpuRuntime();
  class Tied extends Module {
    readonly first: Linear = new Linear(runtime, 2, 2, { generator: new Generator(1) });
    readonly again: Linear = this.first;
    readonly weight: Variable = this.first.weight;
    forward(x: Tensor): Tensor {
      return this.again.forward(this.first.forward(x));
    }
  }
  const tied = new Tied();
  expect([...tied.namedModules()].map(([path]) => path)).toEqual(["", "first"]);
  expect([...tied.namedParameters()].map(([path]) => path)).toEqual(["weight", "first.bias"]);
  expect(Object.keys(await tied.stateDict())).toEqual([
    "first.weight",
    "first.bias",
    "again.weight",
    "again.bias",
    "weight",
  ]);
  tied.half();
  expect(tied.weight).toBe(tied.first.weight);
  expect(tied.weight.dtype).toBe("float16");
});

test("train and eval reach every part", () => {
  const net = new Net(cpuRuntime());
  const modes = (): boolean[] => [...net.namedModules()].map(([, module]) => module.isTraining);
  expect(new Set(modes())).toEqual(new Set([true]));
  expect(net.eval()).toBe(net);
  expect(new Set(modes())).toEqual(new Set([false]));
  net.head.train();
  expect([net.isTraining, net.head.isTraining]).toEqual([false, true]);
});

test("half() copies gradients that are present, with their marks", async () => {
  const runtime = cpuRuntime();
  const net = new Net(runtime);
  const weight = (): Variable => (net.head[1] as Linear).weight;
  const ones = runtime.tensor(new Float32Array(weight().size).fill(3), weight().shape);
  weight().setGrad(ones, new Set(["plain"]));
  net.half();
  const { grad, gradientMarks } = weight();
  expect([weight().dtype, grad?.dtype, [...gradientMarks]]).toEqual([
    "float16",
    "float32",
    ["plain"],
  ]);
  expect(new Set(await grad?.toArray())).toEqual(new Set([3]));
  expect([...net.parameters()].filter((each) => each.grad)).toEqual([weight()]);
});

test("half() stores parameters in float16, and those of batch norm stay float32", async () => {
  const runtime = cpuRuntime();
  const net = new Net(runtime);
  const before = await net.stateDict();
  const weight = net.head[1] as Linear;
  const old = weight.weight;
  expect(net.half()).toBe(net);
  const dtypes = Object.fromEntries(
    [...net.namedParameters(), ...net.namedBuffers()].map(([path, { dtype }]) => [path, dtype]),
  );
  for (const [path, dtype] of Object.entries(dtypes))
    expect(`${path} ${dtype}`).toBe(`${path} ${path.includes(".bn.") ? "float32" : "float16"}`);
  expect([...net.namedParameters()].map(([path]) => path)).toEqual(parameterPaths);
  expect([...net.parameters()].map(({ name }) => name)).toEqual(parameterPaths);
  expect([...net.parameters()].every(({ requiresGrad }) => requiresGrad)).toBe(true);
  const after = await net.stateDict();
  const differences = Object.entries(after).flatMap(([path, { data }]) =>
    Array.from(data, (value, i) => Math.abs(value / (before[path]?.data[i] as number) - 1)),
  );
  expect(Math.max(...differences.filter(Number.isFinite))).toBeLessThanOrEqual(2 ** -11);
  await expect(old.toArray()).rejects.toThrow("dispose");
  const y = net.forward(runtime.zeros([2, 2, 2, 2], { dtype: "float16" }));
  expect(y.dtype).toBe("float16");
  expect([...((await net.float().stateDict()).scale?.data ?? [])]).toEqual([1]);
  expect(net.bfloat16().scale.dtype).toBe("bfloat16");
});

test("errors of layers name the path, once the model has listed its parts", () => {
  const runtime = cpuRuntime();
  const net = new Net(runtime);
  const wrong = runtime.zeros([1, 2, 2, 5]);
  expect(() => net.forward(wrong)).toThrow(
    "Conv2d needs an input [batch, height, width, 2], not [1,2,2,5]",
  );
  net.train();
  expect(() => net.forward(wrong)).toThrow(
    "blocks.0.conv (Conv2d) needs an input [batch, height, width, 2], not [1,2,2,5]",
  );
  expect(() => net.blocks[1]?.bn.forward(runtime.zeros([1, 1, 1, 2]))).toThrow(
    "blocks.1.bn (BatchNorm2d) got one value a channel",
  );
  expect(() => net.head[3]?.forward(runtime.zeros([1, 4]))).toThrow(
    "head.3 (Linear) needs an input [..., 3], not [1,4]",
  );
});

test("modules that refer to each other are visited once", async () => {
  class Part extends Module {
    readonly weight = parameter(cpuRuntime(), [1], [1]);
    owner?: Module;
    readonly part: Part | undefined;
    constructor(part?: Part) {
      super();
      this.part = part;
    }
    forward(): Tensor {
      return this.weight;
    }
  }
  const part = new Part();
  const model = new Part(part);
  part.owner = model;
  const names = ["weight", "part.weight"];
  // Listing from either end gives both ways round.
  expect([...part.namedParameters()].map(([path]) => path)).toEqual(["weight", "owner.weight"]);
  expect([...model.namedParameters()].map(([path]) => path)).toEqual(names);
  expect([model.path, part.path]).toEqual(["", "part"]);
  expect(model.eval().isTraining || part.isTraining).toBe(false);
  const state = await model.stateDict();
  expect(Object.keys(state)).toEqual(names);
  expect(model.loadStateDict(state)).toEqual({ missing: [], unexpected: [], misshapen: [] });
});
