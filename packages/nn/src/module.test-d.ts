import type { Runtime, Tensor } from "@halfstep/tensor";
import { expectTypeOf, test } from "vitest";
import { CrossEntropyLoss, Flatten, Linear, type Module, ReLU, Sequential } from "./index.js";

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

test("initial parameters need a generator", () => {
  // @ts-expect-error without one two layers would be alike, or no run could be repeated
  new Linear(runtime, 2, 3, {});
});
