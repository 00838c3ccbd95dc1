import { autocast } from "@halfstep/autocast";
import type { Device } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { dumpPlan, gpuRuntime, type Runtime, type Tensor } from "@halfstep/tensor";
import type { Facts, Precision, Prepared } from "./prepared.js";

/** A device of its own for each computation, so that its memory is its own. */
export interface Place {
  readonly device: Device;
  readonly runtime: Runtime;
}

export interface HalfstepLibrary {
  open(): Promise<Place>;
}

export const halfstepLibrary = (onDevice: (device: GPUDevice) => void): HalfstepLibrary => ({
  async open() {
    const device = await requestDevice();
    onDevice(device.gpu);
    device.memory.resetPeak();
    return { device, runtime: gpuRuntime(device) };
  },
});

const factsOf = ({ device, runtime }: Place): Facts => {
  const statistics = runtime.lastPlan?.statistics;
  return {
    allocatorPeakBytes: device.memory.peak,
    ...(statistics && {
      activationBytes: statistics.activationBytes,
      castDispatches: statistics.casts,
    }),
  };
};

const ends = ({ device }: Place): Pick<Prepared, "drain" | "dispose"> => ({
  drain: () => device.gpu.queue.onSubmittedWorkDone(),
  dispose: () => device.destroy(),
});

/** An op, whose result a step returns. */
export const operation = (place: Place, record: () => Tensor): Prepared => ({
  async run() {
    (await place.runtime.step(record)).dispose();
  },
  async result() {
    using value = await place.runtime.step(record);
    return Float32Array.from(await value.toArray());
  },
  facts: () => factsOf(place),
  plan: () => dumpPlan(place.runtime.plan(record)),
  ...ends(place),
});

/** A training step: forward, backward, update. Its result is the losses of the first steps. */
export const training = (place: Place, record: () => Tensor): Prepared => ({
  ...operation(place, record),
  async result() {
    const losses: number[] = [];
    for (let step = 0; step < comparedSteps; step++) {
      using loss = await place.runtime.step(record);
      losses.push(await loss.item());
    }
    return Float32Array.from(losses);
  },
});

/** Steps of training whose losses are compared. */
export const comparedSteps = 5;

/** Runs under autocast where the precision is a half one. */
export const inPrecision = (precision: Precision, fn: () => Tensor): Tensor =>
  precision === "float32" ? fn() : autocast({ dtype: precision }, fn);
