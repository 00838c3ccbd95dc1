import type { Device, LaunchTarget } from "@halfstep/device";
import type { StatisticsExchange } from "@halfstep/distributed";
import type { ScaledOptimizer } from "@halfstep/grad-scaler";
import { GradScaler } from "@halfstep/grad-scaler";
import type { ResidentTarget } from "@halfstep/kernels";
import type { BatchStatisticsExchange, Module } from "@halfstep/nn";
import {
  AdamW,
  type ClippableOptimizer,
  type DifferentiableLoss,
  type ExponentialMovingAverage,
  type FlatTensors,
  type ReduceOnPlateau,
  type SGD,
} from "@halfstep/optim";
import {
  ampPrimitives,
  type FlatVariables,
  flatten,
  type Runtime,
  type Storage,
  type Tensor,
} from "@halfstep/tensor";
import { describe, expectTypeOf, test } from "vitest";
import type {
  CheckpointStore,
  Stateful,
  StatefulModel,
  TrainableOptimizer,
  TrainingHook,
  train,
} from "./index.js";
import type { CheckpointFolder, RunFolder } from "./node.js";

declare const runtime: Runtime;
declare const model: Module;

describe("the parts fit, though they do not import each other", () => {
  test("a runtime is a target of launches, and where optimizers keep their state", () => {
    expectTypeOf<Runtime["target"]>().toExtend<LaunchTarget<Storage>>();
    expectTypeOf<Runtime["target"]>().toExtend<ResidentTarget<Storage>>();
  });

  test("flattened variables are what optimizers step", () => {
    expectTypeOf<FlatVariables>().toExtend<FlatTensors<Storage>>();
    expectTypeOf(new AdamW(runtime.target, flatten(model.parameters()))).toEqualTypeOf<
      AdamW<Storage>
    >();
  });

  test("recorded primitives are what a scaler needs", () => {
    const scaler = new GradScaler(ampPrimitives(runtime));
    expectTypeOf(scaler).toEqualTypeOf<GradScaler<Storage, Tensor>>();
    expectTypeOf(scaler.scale).parameter(0).not.toExtend<Storage>();
    expectTypeOf<Tensor>().toExtend<DifferentiableLoss>();
  });

  test("optimizers are what a scaler steps, clipping clips and the loop trains", () => {
    expectTypeOf<AdamW<Storage>>().toExtend<ScaledOptimizer<Storage>>();
    expectTypeOf<SGD<Storage>>().toExtend<ScaledOptimizer<Storage>>();
    expectTypeOf<AdamW<Storage>>().toExtend<ClippableOptimizer<Storage>>();
    expectTypeOf<AdamW<Storage>>().toExtend<TrainableOptimizer>();
    expectTypeOf<SGD<Storage>>().toExtend<TrainableOptimizer>();
    expectTypeOf<AdamW<GPUBuffer>>().not.toExtend<TrainableOptimizer>();
  });

  test("ranks exchange what batch norms need", () => {
    expectTypeOf<StatisticsExchange>().toExtend<BatchStatisticsExchange>();
  });

  test("whatever has a state is a part of a checkpoint", () => {
    expectTypeOf<Module>().toExtend<StatefulModel>();
    expectTypeOf<AdamW<Storage>>().toExtend<Stateful>();
    expectTypeOf<GradScaler<Storage, Tensor>>().toExtend<Stateful>();
    expectTypeOf<ExponentialMovingAverage<Storage>>().toExtend<Stateful>();
    expectTypeOf<ReduceOnPlateau>().toExtend<Stateful>();
    expectTypeOf<RunFolder>().toExtend<Stateful>();
    expectTypeOf<CheckpointFolder>().toExtend<CheckpointStore>();
    expectTypeOf<{ record: () => void }>().toExtend<TrainingHook>();
    expectTypeOf<Tensor>().not.toExtend<Stateful>();
  });

  test("a loss is a tensor, not a promise of one", () => {
    type Loss = Parameters<typeof train<Device>>[0]["loss"];
    expectTypeOf<Loss>().toEqualTypeOf<(batch: Device) => Tensor>();
    expectTypeOf<(batch: Device) => Promise<Tensor>>().not.toExtend<Loss>();
  });
});
