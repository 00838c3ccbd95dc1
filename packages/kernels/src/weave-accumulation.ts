import type { HalfDType, KernelView } from "@halfstep/device";
import { roundElements } from "@halfstep/formats/dtypes";
import type { WovenDefinition } from "./woven-definition.js";
import { twinOf, wovenName } from "./woven-names.js";

/**
 * The results of which each unit is stored exactly once: the twin instead of a result with a twin, and none where stores are
 * observed.
 */
export function resultsStoredOnce(definition: WovenDefinition): readonly string[] {
  const { bindings, epilogue, weavesEpilogue, storedOnce = [], woven } = definition;
  if (woven?.observed) return [];
  const twinsOf = woven?.twinsOf ?? [];
  const result = bindings.at(-1 - twinsOf.length)?.name;
  const isOnce = epilogue === "store" || weavesEpilogue;
  const all = isOnce && result !== undefined ? [...storedOnce, result] : storedOnce;
  return all.map((name) => (twinsOf.includes(name) ? twinOf(name) : name));
}

/** The definition of a kernel that adds to the contents of `result` instead of storing, after rounding to `rounding`. */
export function weaveAccumulation(
  definition: WovenDefinition,
  result: string,
  rounding: HalfDType | undefined,
): WovenDefinition {
  const { name, variant = "", bindings, scalars = [], conversions = [] } = definition;
  const { woven, reference } = definition;
  const accumulated = woven?.accumulated;
  const index = bindings.findIndex((binding) => binding.name === result);
  const { one = wovenName("one") } = definition;
  return {
    ...definition,
    name: accumulated ? name : `${name}+accumulate`,
    variant: `${variant} ${result} ${rounding ?? ""}`.trim(),
    bindings: bindings.map((binding, b) =>
      b === index ? { ...binding, access: "readwrite" as const } : binding,
    ),
    scalars: definition.one ? scalars : [...scalars, { name: one, type: "f32" }],
    one,
    conversions: rounding ? [...conversions, rounding] : conversions,
    woven: { ...woven, accumulated: new Map(accumulated).set(result, rounding) },
    reference(views, values) {
      const sums = views[index] as KernelView;
      const added =
        sums instanceof Float64Array
          ? new Float64Array(sums.length)
          : new Float32Array(sums.length);
      reference(
        views.map((view, v) => (v === index ? added : view)),
        values,
      );
      if (rounding && added instanceof Float32Array) roundElements(added, rounding);
      for (let i = 0; i < sums.length; i++) sums[i] = (sums[i] as number) + (added[i] as number);
    },
  };
}
