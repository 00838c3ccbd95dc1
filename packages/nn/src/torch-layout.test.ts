import { cpuRuntime, type Runtime, type Tensor, type Variable } from "@halfstep/tensor";
import { expect, test } from "vitest";
import {
  BatchNorm2d,
  Conv1d,
  Conv2d,
  ConvTranspose2d,
  Generator,
  LayerNorm,
  Linear,
  loadTorchStateDict,
  Module,
  ModuleDict,
  MultiheadAttention,
  type SavedTensor,
  StateDictError,
  type TorchLayout,
  torchPlaces,
  torchStateDict,
} from "./index.js";

class Body extends Module {
  readonly inLayer: Linear;
  readonly layerNorm: LayerNorm;

  constructor(runtime: Runtime, generator: Generator) {
    super();
    this.inLayer = new Linear(runtime, 2, 3, { generator });
    this.layerNorm = new LayerNorm(runtime, 3);
  }

  override get torchLayout(): TorchLayout {
    return { names: { layerNorm: "LayerNorm" }, ignored: ["mask"], base: "body" };
  }

  forward(x: Tensor): Tensor {
    return this.layerNorm.forward(this.inLayer.forward(x));
  }
}

class Tied extends Module {
  readonly weight: Variable;

  constructor(weight: Variable) {
    super();
    this.weight = weight;
  }

  forward(): Tensor {
    return this.weight;
  }
}

class WithHeads extends Module {
  readonly body: Body;
  readonly heads: readonly Tied[];

  constructor(seed: number) {
    super();
    this.body = new Body(cpuRuntime(), new Generator(seed));
    this.heads = [new Tied(this.body.inLayer.weight), new Tied(this.body.inLayer.weight)];
  }

  override get torchLayout(): TorchLayout {
    return { base: "body" };
  }

  forward(x: Tensor): Tensor {
    return this.body.forward(x);
  }
}

const without = (state: Readonly<Record<string, SavedTensor>>, ...names: readonly string[]) =>
  Object.fromEntries(Object.entries(state).filter(([name]) => !names.includes(name)));

test.each([
  [
    "conv2d",
    (runtime: Runtime, generator: Generator) =>
      new Conv2d(runtime, 4, 6, { kernelSize: [2, 3], groups: 2, generator }),
    [6, 2, 2, 3],
    [3, 2, 0, 1],
  ],
  [
    "convTranspose2d",
    (runtime: Runtime, generator: Generator) =>
      new ConvTranspose2d(runtime, 4, 6, { kernelSize: [2, 3], groups: 2, generator }),
    [4, 3, 2, 3],
    [3, 2, 0, 1],
  ],
  [
    "conv1d",
    (runtime: Runtime, generator: Generator) =>
      new Conv1d(runtime, 4, 6, { kernelSize: 3, groups: 2, generator }),
    [6, 2, 3],
    [2, 1, 0],
  ],
] as const)("%s weights have torch's order there and ours here", async (_, make, shape, order) => {
  const runtime = cpuRuntime();
  const layer = make(runtime, new Generator(1));
  const state = await torchStateDict(layer);
  expect(state.weight?.shape).toEqual(shape);
  expect(await layer.weight.permute([...order]).toArray()).toEqual(state.weight?.data);
  expect(state.bias).toEqual((await layer.stateDict()).bias);
  const other = make(runtime, new Generator(2));
  expect(loadTorchStateDict(other, state)).toEqual({ missing: [], unexpected: [], misshapen: [] });
  expect(await other.stateDict()).toEqual(await layer.stateDict());
});

test("names are in snake_case or as the module says, and torch's counter of batches is ignored", async () => {
  const runtime = cpuRuntime();
  const state = await torchStateDict(new BatchNorm2d(runtime, 2));
  expect(Object.keys(state)).toEqual(["weight", "bias", "running_mean", "running_var"]);
  const counted = {
    ...state,
    num_batches_tracked: { shape: [], dtype: "int32", data: Int32Array.of(7) },
  } as const;
  expect(loadTorchStateDict(new BatchNorm2d(runtime, 2), counted).unexpected).toEqual([]);
  expect(Object.keys(await torchStateDict(new WithHeads(1)))).toEqual([
    "body.in_layer.weight",
    "body.in_layer.bias",
    "body.LayerNorm.weight",
    "body.LayerNorm.bias",
    "heads.0.weight",
    "heads.1.weight",
  ]);
});

test("names of a dictionary are torch's, too", async () => {
  const runtime = cpuRuntime();
  const dict = (seed: number): ModuleDict => {
    const generator = new Generator(seed);
    const layer = (): Linear => new Linear(runtime, 1, 1, { bias: false, generator });
    return new ModuleDict({ fooBar: layer(), foo_bar: layer(), Q: layer() });
  };
  const state = await torchStateDict(dict(1));
  // torch 2.13: [*torch.nn.ModuleDict({"fooBar": …, "foo_bar": …, "Q": …}).state_dict()]
  expect(Object.keys(state)).toEqual(["fooBar.weight", "foo_bar.weight", "Q.weight"]);
  const other = dict(2);
  loadTorchStateDict(other, state);
  expect(await other.stateDict()).toEqual(await dict(1).stateDict());
});

test("two variables of one name in torch are refused by both names", async () => {
  const weight = (): Variable => cpuRuntime().variable([1], [1]);
  class Twice extends Module {
    readonly W = weight();
    readonly _w = weight();
    forward(): Tensor {
      return this.W.add(this._w);
    }
  }
  class Stacked extends Module {
    readonly query = weight();
    readonly key = weight();
    readonly whole = weight();
    override get torchLayout(): TorchLayout {
      return { stacked: { whole: ["query", "key"] } };
    }
    forward(): Tensor {
      return this.whole;
    }
  }
  for (const [model, text] of [
    [new Twice(), "W and _w would both be _w in torch"],
    [new Stacked(), "whole and query would both be whole in torch"],
  ] as const) {
    const remedy = `${text}: rename one, or name it in torchLayout`;
    await expect(torchStateDict(model)).rejects.toThrow(remedy);
    expect(() => loadTorchStateDict(model, {})).toThrow(remedy);
    expect(() => torchPlaces(model)).toThrow(remedy);
  }
  const shared = new Twice();
  Object.assign(shared, { _w: shared.W });
  expect(Object.keys(await torchStateDict(shared))).toEqual(["_w"]);
});

test("a tied parameter may come under any one of its names", async () => {
  const state = await torchStateDict(new WithHeads(1));
  for (const kept of ["body.in_layer.weight", "heads.0.weight", "heads.1.weight"]) {
    const all = ["body.in_layer.weight", "heads.0.weight", "heads.1.weight"];
    const model = new WithHeads(2);
    loadTorchStateDict(model, without(state, ...all.filter((name) => name !== kept)));
    expect(await torchStateDict(model)).toEqual(state);
  }
  expect(() =>
    loadTorchStateDict(
      new WithHeads(2),
      without(state, "body.in_layer.weight", "heads.0.weight", "heads.1.weight"),
    ),
  ).toThrow("missing: body.in_layer.weight, heads.0.weight");
});

test("a body's names may lack its own name, be old, and have masks beside them", async () => {
  const state = await torchStateDict(new WithHeads(1));
  const mask: SavedTensor = { shape: [1], dtype: "float32", data: new Float32Array(1) };
  const body = Object.fromEntries(
    Object.entries(without(state, "heads.0.weight", "heads.1.weight")).map(([name, saved]) => [
      name
        .replace("body.", "")
        .replace("Norm.weight", "Norm.gamma")
        .replace("Norm.bias", "Norm.beta"),
      saved,
    ]),
  );
  const model = new WithHeads(2);
  expect(loadTorchStateDict(model, { ...body, mask })).toEqual({
    missing: [],
    unexpected: [],
    misshapen: [],
  });
  expect(await torchStateDict(model)).toEqual(state);
  const alone = new Body(cpuRuntime(), new Generator(3));
  const keys = loadTorchStateDict(alone, state, { strict: false });
  expect(keys).toEqual({
    missing: [],
    unexpected: ["heads.0.weight", "heads.1.weight"],
    misshapen: [],
  });
  expect((await torchStateDict(alone))["in_layer.weight"]).toEqual(state["body.in_layer.weight"]);
});

test("nothing is loaded where anything is misshapen, and torch's names are in the error", async () => {
  const model = new WithHeads(1);
  const state = await torchStateDict(model);
  const wrong: SavedTensor = { shape: [3, 3], dtype: "float32", data: new Float32Array(9) };
  const load = (): unknown =>
    loadTorchStateDict(model, { ...state, "body.in_layer.weight": wrong, "heads.7.weight": wrong });
  expect(load).toThrow(StateDictError);
  expect(load).toThrow(
    "unexpected: heads.7.weight; of another shape: body.in_layer.weight has shape [3,3]",
  );
  expect(await torchStateDict(model)).toEqual(state);
});

test("attention has torch's projections in one tensor", async () => {
  const runtime = cpuRuntime();
  const layer = new MultiheadAttention(runtime, 2, 1, { generator: new Generator(1) });
  const saved = (shape: readonly number[], values: readonly number[]): SavedTensor => ({
    ...{ shape, dtype: "float32", data: Float32Array.from(values) },
  });
  const range = (length: number, step: number): number[] =>
    Array.from({ length }, (_, i) => i * step - 0.5);
  const state = {
    in_proj_weight: saved([6, 2], range(12, 1 / 8)),
    in_proj_bias: saved([6], range(6, 1 / 4)),
    "out_proj.weight": saved([2, 2], [1, -2, 0.5, 3]),
    "out_proj.bias": saved([2], [0.25, -0.75]),
  };
  loadTorchStateDict(layer, state);
  const y = await layer.forward(runtime.tensor([1, 2, -1, 0.5, 0, 3], [1, 3, 2])).toArray();
  // torch 2.13: torch.nn.MultiheadAttention(2, 1, batch_first=True)
  const expected = [-1.991282, 5.024745, -2.742125, 6.954369, -2.103621, 5.313195];
  expect([...y].every((value, i) => Math.abs(value - (expected[i] ?? 0)) < 1e-5)).toBe(true);
  expect(await torchStateDict(layer)).toEqual(state);

  const { in_proj_weight: whole, ...others } = state;
  expect(() => loadTorchStateDict(layer, others)).toThrow("missing: query_projection.weight");
  const odd = { ...others, in_proj_weight: saved([4, 2], range(8, 1)) };
  expect(() => loadTorchStateDict(layer, odd)).toThrow("unexpected: in_proj_weight");
  const unbiased = new MultiheadAttention(runtime, 2, 1, {
    bias: false,
    generator: new Generator(2),
  });
  const halves = { in_proj_weight: whole, "out_proj.weight": state["out_proj.weight"] };
  expect(loadTorchStateDict(unbiased, halves)).toEqual({
    missing: [],
    unexpected: [],
    misshapen: [],
  });
  expect(Object.keys(await torchStateDict(unbiased))).toEqual([
    "in_proj_weight",
    "out_proj.weight",
  ]);
});
