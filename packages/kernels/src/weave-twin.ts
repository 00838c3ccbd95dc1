import type { KernelView } from "@halfstep/device";
import type { WovenDefinition } from "./woven-definition.js";
import { twinOf } from "./woven-names.js";

/** The definition of a kernel that stores `result` a second time, in one more binding, the last. */
export function weaveTwin(definition: WovenDefinition, result: string): WovenDefinition {
  const { bindings, variant = "", woven, streams, reference } = definition;
  const twinsOf = woven?.twinsOf ?? [];
  const index = bindings.findIndex(({ name }) => name === result);
  const original = bindings[index];
  if (original?.access !== "write" || twinsOf.includes(result))
    throw new RangeError(`${definition.name} cannot store ${result} twice`);
  return {
    ...definition,
    variant: `${variant} twice`.trim(),
    bindings: [...bindings, { ...original, name: twinOf(result) }],
    // A twin is moved as the result is.
    ...(streams && {
      streams: (i, x) => (i < bindings.length ? streams(i, x) : streams(index, result)),
    }),
    woven: { ...woven, twinsOf: [...twinsOf, result] },
    reference(views, scalars) {
      reference(views.slice(0, -1), scalars);
      views.at(-1)?.set(views[index] as KernelView);
    },
  };
}
