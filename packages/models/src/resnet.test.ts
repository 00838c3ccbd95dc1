import { loadTorchStateDict, torchStateDict } from "@halfstep/nn";
import { cpuRuntime, noGrad, ShapeError } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { ResNet, type ResNetOptions, resnet20, resnet32, resnet44, resnet56 } from "./index.js";

const cifar = { layers: [3, 3, 3], width: 16, classes: 10, stem: "cifar" } as const;

test.each<[string, Omit<ResNetOptions, "seed">, number]>([
  ["ResNet-18", { layers: [2, 2, 2, 2] }, 11_689_512],
  ["ResNet-34", { layers: [3, 4, 6, 3] }, 21_797_672],
  ["ResNet-50", { layers: [3, 4, 6, 3], block: "bottleneck" }, 25_557_032],
  ["ResNet-101", { layers: [3, 4, 23, 3], block: "bottleneck" }, 44_549_160],
  ["ResNet-20 with projections", cifar, 272_474],
  ["ResNet-20 with padding, the paper's", { ...cifar, shortcut: "padding" }, 269_722],
  ["ResNet-56 with padding", { ...cifar, layers: [9, 9, 9], shortcut: "padding" }, 853_018],
])("%s has as many parameters as published", (_, options, count) => {
  expect(ResNet.parameterCount(options)).toBe(count);
});

test.each<Omit<ResNetOptions, "seed">>([
  { layers: [2, 1, 3], width: 2, classes: 5, stem: "cifar", channels: 1 },
  { layers: [1, 2, 1], width: 4, classes: 5, stem: "cifar", shortcut: "padding" },
  { layers: [1, 2, 1, 1], width: 2, block: "bottleneck", classes: 3 },
  { layers: [2, 1, 1, 1], width: 2, block: "bottleneck", shortcut: "padding", classes: 3 },
])("the parameters that are counted are those that are made: %o", (options) => {
  const model = new ResNet(cpuRuntime(), { seed: 1, ...options });
  const made = [...model.parameters()].reduce((sum, { size }) => sum + size, 0);
  expect(ResNet.parameterCount(options)).toBe(made);
});

test("weights are drawn as in torchvision: normal, by the fan of the backward pass", async () => {
  const { conv2 } = new ResNet(cpuRuntime(), { seed: 1, layers: [1, 1, 1], width: 32 })
    .layer1[0] as never as { conv2: { weight: { toArray(): Promise<Float32Array> } } };
  const values = await conv2.weight.toArray();
  const mean = values.reduce((a, b) => a + b) / values.length;
  const deviation = Math.sqrt(values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length);
  const expected = Math.sqrt(2 / (9 * 32));
  expect(Math.abs(mean)).toBeLessThan(0.05 * expected);
  expect(Math.abs(deviation / expected - 1)).toBeLessThan(0.05);
});

test("zeroInitResidual starts every block as what joins it", async () => {
  const runtime = cpuRuntime();
  const model = resnet20(runtime, { seed: 1, width: 2, zeroInitResidual: true });
  const block = model.layer1[0] as never as { forward(x: object): { toArray(): Promise<object> } };
  const x = runtime.tensor(
    Float32Array.from({ length: 128 }, (_, i) => i % 11),
    [2, 8, 4, 2],
  );
  expect(await noGrad(() => block.forward(x)).toArray()).toEqual(await x.toArray());
  const weights = [...model.namedParameters()].filter(([name]) =>
    /\dbn2\.weight|\.bn2\.weight/.test(name),
  );
  expect(weights).toHaveLength(9);
});

test("the names that networks for CIFAR-10 have elsewhere are known", async () => {
  const options = { seed: 1, width: 2, layers: [1, 1, 1] };
  const state = await torchStateDict(resnet20(cpuRuntime(), options));
  const counted = { shape: [], dtype: "int32" as const, data: Int32Array.of(3) };
  const elsewhere = Object.fromEntries(
    Object.entries({ ...state, "layer2.0.downsample.1.num_batches_tracked": counted }).map(
      ([name, saved]) => [name.replace("downsample", "shortcut").replace("fc.", "linear."), saved],
    ),
  );
  const other = resnet20(cpuRuntime(), { ...options, seed: 2 });
  loadTorchStateDict(other, elsewhere);
  expect(await torchStateDict(other)).toEqual(state);
});

test.each([
  [resnet32, 464_154],
  [resnet44, 658_586],
  [resnet56, 853_018],
])("%o has as many parameters as published", (preset, count) => {
  const model = preset(cpuRuntime(), { seed: 1, shortcut: "padding" });
  expect([...model.parameters()].reduce((sum, { size }) => sum + size, 0)).toBe(count);
});

test("a shortcut with padding is every second pixel between new channels of zeros", async () => {
  const runtime = cpuRuntime();
  const model = resnet20(runtime, {
    seed: 1,
    width: 2,
    shortcut: "padding",
    zeroInitResidual: true,
  });
  const block = model.layer2[0] as never as { forward(x: object): { toArray(): Promise<object> } };
  const x = runtime.tensor(
    Float32Array.from({ length: 18 }, (_, i) => i + 1),
    [1, 3, 3, 2],
  );
  const y = noGrad(() => block.forward(x)).toArray();
  expect(await y).toEqual(Float32Array.of(0, 1, 2, 0, 0, 5, 6, 0, 0, 13, 14, 0, 0, 17, 18, 0));
});

test("images of any size, and stages of which there are three or four", () => {
  const runtime = cpuRuntime();
  const model = resnet20(runtime, { seed: 1, width: 2 });
  expect(model.forward(runtime.zeros([2, 19, 27, 3])).shape).toEqual([2, 10]);
  expect(() => model.forward(runtime.zeros([2, 3, 32, 32]))).toThrow(ShapeError);
  expect(() => new ResNet(runtime, { seed: 1, layers: [2, 2] })).toThrow("three or four");
  for (const [wrong, text] of [
    [{ block: "x" }, 'block is "x"; pass "basic" or "bottleneck"'],
    [{ stem: "cfar" }, 'stem is "cfar"; pass "imagenet" or "cifar"'],
    [{ shortcut: "pading" }, 'shortcut is "pading"; pass "projection" or "padding"'],
  ] as const)
    expect(() => new ResNet(runtime, { seed: 1, layers: [1, 1, 1], ...wrong } as never)).toThrow(
      text,
    );
});
