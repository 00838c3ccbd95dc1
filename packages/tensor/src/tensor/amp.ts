import type { AmpPrimitives } from "@halfstep/grad-scaler";
import { checkFinite, type PlainAmpPrimitives, plainAmpPrimitives } from "@halfstep/kernels/amp";
import { argumentCheck } from "../arguments/arguments.js";
import { isTensor } from "../arguments/is-tensor.js";
import * as kinds from "../arguments/kinds.js";
import { castTo } from "../dispatch/cast.js";
import { fuseFiniteChecks } from "../plan/passes/fuse-finite-checks.js";
import { fuseScaleUpdate } from "../plan/passes/fuse-scale-update.js";
import type { Storage } from "../record/storage.js";
import { hasFurther, type Runtime } from "./runtime.js";
import type { Tensor } from "./tensor.js";

/**
 * The primitives of loss scaling for a runtime. `watchStep` finds the origin of an overflow, or of gradients that were all rounded to
 * zero, if the runtime searches the step: see its options `provenance` and `underflow`. Scalers with `targetUnderflow` need
 * `countExponents`. It is there where the entry `@halfstep/tensor` is loaded: bundles of `@halfstep/tensor/functional` alone lack it.
 */
export type TensorAmpPrimitives = Omit<PlainAmpPrimitives<Storage>, "scaleLoss"> &
  Required<Pick<AmpPrimitives<Storage, Tensor>, "scaleLoss" | "watchStep">> &
  Pick<AmpPrimitives<Storage, Tensor>, "countExponents">;

/**
 * The primitives of loss scaling, recorded as launches of the step: found_inf, the scale and the decision to skip stay on the
 * device.
 *
 * ```ts
 * const scaler = new GradScaler(ampPrimitives(runtime));
 * ```
 *
 * @throws ArgumentError for what is no runtime
 */
export function ampPrimitives(runtime: Runtime): TensorAmpPrimitives {
  checkRuntime([runtime]);
  const scales = new WeakMap<Storage, Tensor>();
  const { target } = runtime;
  runtime.bring({ fuseFiniteChecks, fuseScaleUpdate });
  const primitives = hasFurther(runtime)
    ? runtime.countingPrimitives()
    : plainAmpPrimitives<Storage>(target);
  return {
    ...primitives,
    scaleLoss(loss, state, { weight, lossFlag, mark }) {
      if (!isTensor(loss))
        throw new TypeError(
          `the loss to scale is ${Array.isArray(loss) ? "a list within a list" : String(loss)}, not a tensor: scale the loss itself, and read its number after the step`,
        );
      let scale = scales.get(state);
      if (!scale) {
        scale = runtime.variableAt({ storage: state, offset: 0 }, [], "float32", "loss scale");
        scales.set(state, scale);
      }
      const { storage: buffer, offset, size: length, dtype } = loss;
      const x = { buffer, offset, length, dtype };
      target.launch(checkFinite({ x, foundInf: lossFlag }));
      const single = castTo(loss, "float32");
      const scaled = (weight === 1 ? single : single.mul(weight)).mul(scale);
      if (mark && scaled.gradNode) scaled.gradNode.scaleMark = mark;
      return scaled;
    },
    watchStep: () => runtime.recorder.searches?.watch(runtime.recording) ?? findNothing,
  };
}

const checkRuntime = argumentCheck("ampPrimitives", { runtime: kinds.runtime });

const findNothing = (): Promise<undefined> => Promise.resolve(undefined);
