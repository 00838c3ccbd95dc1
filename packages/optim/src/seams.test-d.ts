import type { Gradient, ScaledOptimizer } from "@halfstep/grad-scaler";
import type { CpuBuffer, CpuTarget, DeviceTarget, ResidentTarget } from "@halfstep/kernels";
import { describe, expectTypeOf, test } from "vitest";
import type {
  AdamW,
  AdamWGroupOptions,
  ClippableOptimizer,
  FlatTensors,
  FP16Optimizer,
  LARC,
  Muon,
  ParameterAverage,
  SGD,
  SGDGroupOptions,
  Watchable,
} from "./index.js";

/** Storage of a recorder, as far as optimizers are concerned. */
interface Storage {
  readonly id: number;
}

describe("seams", () => {
  test("optimizers are what a scaler steps and clipping clips", () => {
    expectTypeOf<AdamW<GPUBuffer>>().toExtend<ScaledOptimizer<GPUBuffer>>();
    expectTypeOf<SGD<Storage>>().toExtend<ScaledOptimizer<Storage>>();
    expectTypeOf<Muon<GPUBuffer>>().toExtend<ScaledOptimizer<GPUBuffer>>();
    expectTypeOf<LARC<GPUBuffer, SGDGroupOptions>>().toExtend<ScaledOptimizer<GPUBuffer>>();
    expectTypeOf<AdamW<Storage>>().toExtend<ClippableOptimizer<Storage>>();
    expectTypeOf<LARC<Storage, SGDGroupOptions>>().toExtend<ClippableOptimizer<Storage>>();
    expectTypeOf<Gradient<Storage>["buffer"]>().toEqualTypeOf<Storage>();
  });

  test("optimizers and what wraps them are what averages and meters watch", () => {
    expectTypeOf<AdamW<Storage>>().toExtend<Watchable<Storage>>();
    expectTypeOf<LARC<Storage, AdamWGroupOptions>>().toExtend<Watchable<Storage>>();
    expectTypeOf<FP16Optimizer<Storage, AdamWGroupOptions>>().toExtend<Watchable<Storage>>();
    expectTypeOf<AdamW<GPUBuffer>>().not.toExtend<Watchable<Storage>>();
    expectTypeOf<ParameterAverage<Storage>["during"]>().returns.toExtend<Promise<unknown>>();
  });

  test("buffers of one kind do not mix with those of another", () => {
    expectTypeOf<AdamW<GPUBuffer>>().not.toExtend<ScaledOptimizer<Storage>>();
    expectTypeOf<FlatTensors<CpuBuffer>>().not.toExtend<FlatTensors<GPUBuffer>>();
  });

  test("the CPU and a bare device are targets", () => {
    expectTypeOf<CpuTarget>().toExtend<ResidentTarget<CpuBuffer>>();
    expectTypeOf<DeviceTarget>().toExtend<ResidentTarget<GPUBuffer>>();
  });
});
