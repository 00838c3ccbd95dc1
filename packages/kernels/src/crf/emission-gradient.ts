import type { Kernel } from "@halfstep/device";
import { linearMain, linearWorkgroups } from "../kernel.js";
import { crfFunctions } from "./chain.js";
import { type CrfParts, crfKernel, maskBinding, single, tagsBinding } from "./crf-kernel.js";

/** emissionGradient = marginals, minus lossGradient at the given tags. */
export const emissionKernel: (parts: CrfParts) => Kernel = crfKernel<
  "marginals" | "tags" | "mask" | "lossGradient" | "emissionGradient"
>((parts) => {
  const { hasTags, hasMask } = parts;
  return {
    name: "crfEmissionGradient",
    bindings: [
      single("marginals", "read"),
      ...tagsBinding(parts),
      ...maskBinding(parts),
      { name: "lossGradient", access: "read" },
      { name: "emissionGradient", access: "write" },
    ],
    body: () => `${crfFunctions(parts)}
fn value(e: u32) -> f32 {
  let place = e / s.tags;
  if (!is_present(place)) { return 0.0; }
  let marginal = at_marginals(e);
  ${hasTags ? "if (at_tags(place) == e % s.tags) { return marginal - at_lossGradient(place / s.length); }" : ""}
  return marginal;
}
${linearMain()}
  let e = index * 4u;
  if (e >= s.batch * s.length * s.tags) { return; }
  store_emissionGradient(index, vec4f(value(e), value(e + 1u), value(e + 2u), value(e + 3u)));
}
`,
    workgroups: ({ batch, length, tags }) =>
      linearWorkgroups(Math.ceil(((batch as number) * (length as number) * (tags as number)) / 4)),
    reference({ marginals, tags, mask, lossGradient, emissionGradient }, { length, tags: count }) {
      for (const [e, marginal] of marginals.entries()) {
        const place = Math.floor(e / count);
        const isGiven = hasTags && tags[place] === e % count;
        const slope = lossGradient[Math.floor(place / length)] as number;
        const isPresent = !hasMask || mask[place] !== 0;
        emissionGradient[e] = isPresent ? marginal - (isGiven ? slope : 0) : 0;
      }
    },
  };
});
