import type { Binding, Kernel, KernelBinding, KernelView, Launch } from "@halfstep/device";
import { scaleRuleWgsl } from "@halfstep/grad-scaler/wgsl";
import { defineKernel } from "../kernel.js";
import {
  clipsGradients,
  controlFunctions,
  controlWgsl,
  isStepControl,
} from "../optimizers/step-control.js";
import { floatsOf, isPlainScaleUpdate, scaleUpdateWgsl } from "./update-scale.js";

const word = { access: "readwrite", unit: 1, dtypes: ["uint32"] } as const;

/** The bindings that both kernels share, in order: the flag and the state, as bits. */
const shared: readonly KernelBinding[] = [
  { name: "foundInf", ...word },
  { name: "state", ...word },
];

const source = {
  foundInfBits: "at_foundInf(0u)",
  inverseScale: "bitcast<f32>(at_state(1u))",
};

/** One kernel for both, with the scalars of the two. */
const makeKernel = (control: Kernel, update: Kernel): Kernel =>
  defineKernel({
    name: `${control.name}+${update.name}`,
    variant: control.variant,
    bindings: [...shared, ...update.bindings.slice(2), ...control.bindings.slice(2)],
    scalars: [...control.scalars, ...update.scalars],
    body: () => `${scaleRuleWgsl}${controlFunctions(clipsGradients(control))}
@compute @workgroup_size(1) fn main() {
  {
${controlWgsl(clipsGradients(control), source)}  }
  {
${scaleUpdateWgsl()}  }
}
`,
    workgroups: () => [1, 1, 1],
    reference([foundInf, state, lossFlag, outcomes, ...own], scalars) {
      const flag = foundInf as KernelView;
      const words = state as KernelView;
      control.reference([floatsOf(flag), floatsOf(words), ...own], scalars);
      update.reference([words, flag, lossFlag as KernelView, outcomes as KernelView], scalars);
    },
  });

const kernels = new Map<Kernel, Kernel>();

/**
 * One launch for the `stepControl` of an optimizer and the `updateScale` after it, both in one invocation. Undefined where their flags
 * or scales differ, or where the update sums up a norm or counts exponents.
 *
 * The scale is then updated before the optimizer's step instead of after it, so no launch in between may read the scale or the flag.
 */
export function controlAndScale<B>(control: Launch<B>, update: Launch<B>): Launch<B> | undefined {
  if (!isStepControl(control.kernel) || !isPlainScaleUpdate(update.kernel)) return undefined;
  const [flag, scale, ...own] = control.bindings as readonly Binding<B>[];
  const [state, foundInf, lossFlag, outcomes] = update.bindings as readonly Binding<B>[];
  if (!state || !foundInf || !lossFlag || !outcomes) return undefined;
  if (flag?.buffer !== foundInf.buffer || scale?.buffer !== state.buffer) return undefined;
  const kernel = kernels.get(control.kernel) ?? makeKernel(control.kernel, update.kernel);
  kernels.set(control.kernel, kernel);
  return {
    kernel,
    bindings: [foundInf, state, lossFlag, outcomes, ...own],
    scalars: { ...control.scalars, ...update.scalars },
  };
}
