import { assertType, describe, expectTypeOf, test } from "vitest";
import {
  type AmpPrimitives,
  float32Primitives,
  GradScaler,
  type ScaledOptimizer,
  type StepOutcome,
} from "./index.js";

/** A recorder whose losses are richer than its buffers. */
interface Storage {
  readonly id: number;
}
interface Tensor {
  readonly storage: Storage;
  backward(): void;
}
declare const recorder: AmpPrimitives<Storage, Tensor>;
declare const loss: Tensor;

describe("GradScaler", () => {
  test("keeps the type of losses apart from that of buffers", () => {
    const scaler = new GradScaler(recorder);
    expectTypeOf(scaler).toEqualTypeOf<GradScaler<Storage, Tensor>>();
    expectTypeOf(scaler.scale(loss)).toEqualTypeOf<Tensor>();
    expectTypeOf(scaler.scale([loss, loss])).toEqualTypeOf<Tensor[]>();
    // @ts-expect-error a buffer is no loss
    scaler.scale({ id: 1 });
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
