import { assertType, describe, expectTypeOf, test } from "vitest";
import {
  type AccumulationWindow,
  type AmpPrimitives,
  accumulationWindow,
  float32Primitives,
  GradScaler,
  type Scaled,
  type ScaledOptimizer,
  type StepOutcome,
  scaledValue,
} from "./index.js";

/** A recorder whose type of losses differs from that of buffers. */
interface Storage {
  readonly id: number;
}
interface Tensor {
  readonly storage: Storage;
  backward(options?: { retainGraph: boolean }): void;
  item(): Promise<number>;
  add(other: Tensor): Tensor;
}
declare const optimizer: ScaledOptimizer<Storage> & { readonly lr: number };
declare const recorder: AmpPrimitives<Storage, Tensor>;
declare const loss: Tensor;

describe("GradScaler", () => {
  test("keeps the type of losses apart from that of buffers", () => {
    const scaler = new GradScaler(recorder);
    expectTypeOf(scaler).toEqualTypeOf<GradScaler<Storage, Tensor>>();
    expectTypeOf(scaler.scale(loss)).toEqualTypeOf<Scaled<Tensor>>();
    expectTypeOf(scaler.scale([loss, loss])).toEqualTypeOf<Scaled<Tensor>[]>();
    // @ts-expect-error a buffer is no loss
    scaler.scale({ id: 1 });
  });

  test("gives a loss that only goes backward", () => {
    const scaled = new GradScaler(recorder).scale(loss);
    expectTypeOf(scaled.backward).toEqualTypeOf<Tensor["backward"]>();
    scaled.backward({ retainGraph: true });
    // @ts-expect-error reading it would give a number that is off by the scale
    void scaled.item();
    // @ts-expect-error so would adding it to a loss
    loss.add(scaled);
    // @ts-expect-error scaled twice
    new GradScaler(recorder).scale(scaled);
    // @ts-expect-error it is no loss to log
    assertType<Tensor>(scaled);
    // @ts-expect-error a loss is not scaled by saying so
    assertType<Scaled<Tensor>>(loss);
    expectTypeOf(scaledValue(scaled)).toEqualTypeOf<Tensor>();
    const words = new GradScaler(float32Primitives).scale(new Float32Array(1));
    // @ts-expect-error no element of it either
    void words[0];
    expectTypeOf(scaledValue(words)).toEqualTypeOf<Float32Array>();
  });

  test("takes optimizers over its own buffers only", () => {
    const scaler = new GradScaler(float32Primitives);
    assertType<(optimizer: ScaledOptimizer<Float32Array>) => void>((each) => scaler.step(each));
    // @ts-expect-error other buffers
    assertType<(optimizer: ScaledOptimizer<Storage>) => void>((each) => scaler.step(each));
  });

  test("refuses unknown presets and options", () => {
    // @ts-expect-error no such preset
    new GradScaler(float32Primitives, { preset: "tf" });
    // @ts-expect-error torch's name in snake case
    new GradScaler(float32Primitives, { init_scale: 1 });
  });

  test("yields outcomes", () => {
    expectTypeOf<GradScaler<Float32Array>["drain"]>().returns.resolves.toEqualTypeOf<
      readonly StepOutcome[]
    >();
    expectTypeOf<GradScaler<Float32Array>["outcomes"]>().returns.toExtend<
      AsyncIterable<StepOutcome>
    >();
  });
});

describe("AccumulationWindow", () => {
  const scaler = new GradScaler(recorder);

  test("has nothing that could be called at the wrong time", () => {
    const window = accumulationWindow(scaler, optimizer, { microSteps: 4 });
    expectTypeOf<keyof AccumulationWindow<Storage, Tensor, typeof optimizer>>().toEqualTypeOf<
      "remaining" | "isFull" | "scale" | "step" | "reset"
    >();
    window.scale(loss).backward();
    window.step({ clip: (each) => expectTypeOf(each).toEqualTypeOf<typeof optimizer>() });
    // @ts-expect-error unscaling is the window's
    window.unscale(optimizer);
    // @ts-expect-error micro-steps are counted, not weighed
    window.scale(loss, 2);
  });

  test("of samples or tokens wants to know how many a micro-batch has", () => {
    const window = accumulationWindow(scaler, [optimizer], { samples: 256 });
    window.scale(loss, 64).backward();
    accumulationWindow(scaler, optimizer, { tokens: 4096 }).scale([loss, loss], 100);
    // @ts-expect-error how many?
    window.scale(loss);
    // @ts-expect-error in which unit?
    accumulationWindow(scaler, optimizer, { batches: 4 });
  });
});
