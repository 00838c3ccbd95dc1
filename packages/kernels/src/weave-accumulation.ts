import type { HalfDType, KernelView } from "@halfstep/device";
import { roundArray } from "@halfstep/formats";
import { formatOf } from "./cpu.js";
import type { KernelDefinition } from "./definition.js";
import { twinOf, wovenName } from "./woven-names.js";

/** The results of a kernel of which each unit is stored once, without those that an observer or a twin is told of; and the twins. */
export function resultsStoredOnce(definition: KernelDefinition): readonly string[] {
  const { bindings, epilogue, storedOnce = [], twinsOf = [], observed } = definition;
  if (observed) return [];
  const result = bindings.at(-1 - twinsOf.length)?.name;
  const all = epilogue && result !== undefined ? [...storedOnce, result] : storedOnce;
  return all.map((name) => (twinsOf.includes(name) ? twinOf(name) : name));
}

/** The definition of a kernel that adds to what is in `result` what it would have stored there, which rounds to `rounding` first. */
export function weaveAccumulation(
  definition: KernelDefinition,
  result: string,
  rounding: HalfDType | undefined,
): KernelDefinition {
  const { name, variant = "", bindings, scalars = [], conversions = [] } = definition;
  const { accumulated, body, reference } = definition;
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
    accumulated: new Map(accumulated).set(result, rounding),
    body: (context, epilogue) => body(context, epilogue, true),
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
      if (rounding && added instanceof Float32Array) roundArray(added, formatOf(rounding), added);
      for (let i = 0; i < sums.length; i++) sums[i] = (sums[i] as number) + (added[i] as number);
    },
  };
}
