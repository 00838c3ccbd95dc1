import {
  checkFinite,
  type KernelAmpPrimitives,
  ampPrimitives as kernelPrimitives,
} from "@halfstep/kernels";
import { castTo } from "./cast.js";
import { isTensor } from "./is-tensor.js";
import type { NonFiniteOrigin, Search } from "./provenance.js";
import type { Runtime } from "./runtime.js";
import type { Storage } from "./storage.js";
import type { Tensor } from "./tensor.js";

/** What loss scaling needs of a runtime: `AmpPrimitives<Storage, Tensor>` of `@halfstep/grad-scaler`. */
export interface TensorAmpPrimitives extends Omit<KernelAmpPrimitives<Storage>, "scaleLoss"> {
  scaleLoss(
    loss: Tensor,
    state: Storage,
    options: { readonly weight: number; readonly lossFlag: Storage },
  ): Tensor;
  /** Says where the overflow of the open step began, if the runtime searches it: see its option `provenance`. */
  watchStep(): (overflowed: boolean) => Promise<NonFiniteOrigin | undefined>;
}

/**
 * The primitives of loss scaling, recorded like everything else in a step: found_inf, the scale and the decision to skip
 * never visit the host.
 *
 * ```ts
 * const scaler = new GradScaler(ampPrimitives(runtime));
 * ```
 */
export function ampPrimitives(runtime: Runtime): TensorAmpPrimitives {
  const scales = new WeakMap<Storage, Tensor>();
  return {
    ...kernelPrimitives(runtime.target),
    scaleLoss(loss, state, { weight, lossFlag }) {
      if (!isTensor(loss))
        throw new TypeError(
          `the loss to scale is ${String(loss)}, not a tensor: scale the loss itself, and read its number after the step`,
        );
      let scale = scales.get(state);
      if (!scale) {
        scale = runtime.variableAt({ storage: state, offset: 0 }, [], "float32", "loss scale");
        scales.set(state, scale);
      }
      const { storage: buffer, offset, size: length, dtype } = loss;
      const x = { buffer, offset, length, dtype };
      runtime.target.launch(checkFinite({ x, foundInf: lossFlag }));
      const single = castTo(loss, "float32");
      return (weight === 1 ? single : single.mul(weight)).mul(scale);
    },
    watchStep() {
      let search: Search | undefined;
      runtime.recording.searchListeners.push((found) => {
        search = found;
      });
      return async (overflowed) => {
        if (!overflowed) return undefined;
        const origin = search && (await runtime.originIn(search, { wait: "background" }));
        runtime.recorder.provenance.stepSkipped(origin !== undefined);
        return origin;
      };
    },
  };
}
