import type { Runtime, Tensor } from "@halfstep/tensor";
import { expectTypeOf, test } from "vitest";
import {
  CrossEntropyLoss,
  Flatten,
  type Layer,
  Linear,
  type Module,
  ReLU,
  type SavedTensor,
  Sequential,
} from "./index.js";

declare const runtime: Runtime;

test("modules of any signature are modules, and layers are from tensor to tensor", () => {
  expectTypeOf<Linear>().toExtend<Module>();
  expectTypeOf<CrossEntropyLoss>().toExtend<Module>();
  expectTypeOf(new Sequential(new Flatten(), new ReLU()).forward).toEqualTypeOf<
    (x: Tensor) => Tensor
  >();
  // @ts-expect-error a loss takes two tensors
  new Sequential(new Flatten(), new CrossEntropyLoss());
});

test("functions of any module of a signature can call its forward", () => {
  const apply = (model: Layer, x: Tensor): Tensor => model.forward(x);
  expectTypeOf(apply).toBeCallableWith(new Sequential(new ReLU()), runtime.zeros([1]));
  const lossOf = (loss: Module & { forward(x: Tensor, y: Tensor): Tensor }, x: Tensor): Tensor =>
    loss.forward(x, x);
  expectTypeOf(lossOf).toBeCallableWith(new CrossEntropyLoss(), runtime.zeros([1]));
  // @ts-expect-error a loss takes two tensors
  apply(new CrossEntropyLoss(), runtime.zeros([1]));
});

test("the dtype of a saved tensor tells the type of its elements", () => {
  const elements = (saved: SavedTensor) => {
    if (saved.dtype === "int32") expectTypeOf(saved.data).toEqualTypeOf<Int32Array>();
    else if (saved.dtype === "uint32") expectTypeOf(saved.data).toEqualTypeOf<Uint32Array>();
    else expectTypeOf(saved.data).toEqualTypeOf<Float32Array | Float64Array>();
  };
  expectTypeOf(elements).parameters.toEqualTypeOf<[SavedTensor]>();
  expectTypeOf<SavedTensor<"uint32">["data"]>().toEqualTypeOf<Uint32Array>();
  // @ts-expect-error elements of another type than the dtype says
  const _: SavedTensor = { shape: [1], dtype: "uint32", data: new Float32Array(1) };
});

test("initial parameters need a generator", () => {
  // @ts-expect-error without one two layers would be alike, or no run could be repeated
  new Linear(runtime, 2, 3, {});
});
