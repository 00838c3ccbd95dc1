import { cpuRuntime, Generator, type Tensor } from "@halfstep/tensor";
import { expect, test } from "vitest";
import {
  hookGradient,
  Linear,
  LSTM,
  ModuleDict,
  ModuleList,
  ReLU,
  readStatistics,
  recordStatistics,
  Sequential,
} from "./index.js";

const runtime = cpuRuntime();
const generator = new Generator(3);
const listed = async (x: Tensor): Promise<number[]> => [...(await x.toArray())];

test("hooks see and replace inputs, results and gradients, in their order, until they are removed", async () => {
  const layer = new ReLU();
  const calls: string[] = [];
  const removing = [
    layer.registerForwardPreHook((module, [x]) => {
      calls.push(`before ${module.constructor.name}`);
      return [(x as Tensor).add(1)];
    }),
    layer.registerForwardHook((_, [x], y) => {
      calls.push(`after ${(x as Tensor).shape}`);
      return (y as Tensor).mul(2);
    }),
    layer.registerGradientHook((_, gradient) => {
      calls.push("gradient");
      return gradient.mul(10);
    }),
  ];
  const x = runtime.variable([-3, 1], [2], { requiresGrad: true });
  const y = layer.forward(x);
  y.sum().backward();
  expect([await listed(y), await listed(x.grad as Tensor)]).toEqual([
    [0, 4],
    [0, 20],
  ]);
  expect(calls).toEqual(["before ReLU", "after 2", "gradient"]);
  for (const remove of removing) remove();
  expect(await listed(layer.forward(x))).toEqual([0, 1]);
  expect(calls).toHaveLength(3);
});

test("gradient hooks of a module run in the order of registration", async () => {
  const layer = new ReLU();
  layer.registerGradientHook((_, gradient) => gradient.clamp({ min: -1, max: 1 }));
  layer.registerGradientHook((_, gradient) => gradient.mul(10));
  const x = runtime.variable([2], [1], { requiresGrad: true });
  layer.forward(x).mul(5).sum().backward();
  // torch 2.13, register_full_backward_hook: 10. In the other order it is 1.
  expect(await listed(x.grad as Tensor)).toEqual([10]);
});

test("a hook before forward may return the only argument", async () => {
  const layer = new ReLU();
  layer.registerForwardPreHook((_, [x]) => (x as Tensor).mul(2));
  layer.registerForwardPreHook((_, [x]) => [(x as Tensor).add(1)]);
  expect(await listed(layer.forward(runtime.tensor([3], [1])))).toEqual([7]);
});

test("a hook that is no function is refused where it is registered", () => {
  const layer = new ReLU();
  expect(() => layer.registerForwardPreHook(3 as never)).toThrow(
    "registerForwardPreHook(hook): hook is 3; pass a function",
  );
  expect(() => layer.registerForwardHook(undefined as never)).toThrow("hook is undefined");
  expect(() => layer.registerGradientHook({} as never)).toThrow(
    "registerGradientHook(hook): hook is an object; pass a function",
  );
  expect(() => hookGradient(runtime.zeros([1]), null as never)).toThrow("hook is null");
});

test("a hook on a tensor's gradient may only look", async () => {
  const x = runtime.variable([2], [1], { requiresGrad: true });
  const seen: Tensor[] = [];
  hookGradient(x.mul(3), (gradient) => {
    seen.push(gradient.mul(1));
    return undefined;
  })
    .square()
    .sum()
    .backward();
  expect(await listed(x.grad as Tensor)).toEqual([36]);
  expect(await listed(seen[0] as Tensor)).toEqual([12]);
});

test("statistics of activations and gradients by module", async () => {
  const model = new Sequential(new Linear(runtime, 2, 4, { generator }), new ReLU());
  const statistics = recordStatistics(model);
  const x = runtime.tensor([1, -2, 3, 0.5], [2, 2]);
  const seen = await runtime.step(() => {
    model.forward(x).sum().backward();
    return statistics.take();
  });
  const read = await readStatistics(seen);
  expect(Object.keys(read)).toEqual(["0", "1"]);
  const hidden = await listed((model[0] as Linear).forward(x));
  const mean = hidden.reduce((a, b) => a + b, 0) / 8;
  expect(read["0"]?.activation.mean).toBeCloseTo(mean, 5);
  expect(read["0"]?.activation.largest).toBeCloseTo(Math.max(...hidden.map(Math.abs)), 5);
  expect(read["1"]?.activation.zeros).toBe(hidden.filter((v) => v <= 0).length / 8);
  expect(read["1"]?.gradient).toEqual({ mean: 1, std: 0, largest: 1, zeros: 0 });
  expect(read["0"]?.gradient?.zeros).toBe(hidden.filter((v) => v <= 0).length / 8);
  expect(statistics.take()).toEqual({ "0": expect.anything() });
  statistics.remove();
  model.forward(x);
  expect(statistics.take()).toEqual({});
});

test("tensors in the result of a module have statistics of their own", async () => {
  const model = new ModuleDict({ lstm: new LSTM(runtime, 2, 4, { generator }) });
  const { take } = recordStatistics(model);
  const seen = await runtime.step(() => {
    const { output } = model.get("lstm").forward(runtime.tensor([1, 2, 3, 4], [2, 1, 2]));
    output.sum().backward();
    return take();
  });
  const read = await readStatistics(seen);
  expect(Object.keys(read)).toEqual(["lstm.output", "lstm.hidden", "lstm.cell"]);
  expect(read["lstm.output"]?.gradient).toEqual({ mean: 1, std: 0, largest: 1, zeros: 0 });
  expect(read["lstm.cell"]?.activation.largest).toBeGreaterThan(0);
  expect(read["lstm.cell"]?.gradient).toBeUndefined();
});

test("containers own their modules under torch's names", () => {
  const layer = (): Linear => new Linear(runtime, 2, 2, { bias: false, generator });
  const list = new ModuleList([layer(), layer()]);
  const dict = new ModuleDict({ left: layer(), right: layer() });
  const names = [list, dict].flatMap((module) =>
    [...module.namedParameters()].map(([name]) => name),
  );
  expect(names).toEqual(["0.weight", "1.weight", "left.weight", "right.weight"]);
  expect([...list]).toEqual([list[0], list[1]]);
  expect(dict.keys().map((name) => dict.get(name))).toEqual(
    [...dict.namedChildren()].map(([, m]) => m),
  );
  expect(() => dict.get("middle")).toThrow("it has left, right");
  expect(() => list.forward()).toThrow("ModuleList has no forward");
  expect(() => new ModuleDict({ forward: layer() })).toThrow("cannot have the name forward");
  expect(() => new ModuleList([3 as never])).toThrow("0 is no module");
});
