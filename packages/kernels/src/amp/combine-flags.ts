import type { Launch } from "@halfstep/device";
import { defineKernel } from "../kernel.js";

const word = { access: "readwrite", unit: 1, dtypes: ["float32"] } as const;

const kernel = defineKernel({
  name: "combine-flags",
  bindings: [
    { name: "flag", ...word, access: "read" },
    { name: "into", ...word },
  ],
  scalars: [{ name: "isFirst", type: "u32" }],
  // Of the bits, because compilers may take NaN for equal to 0.
  body: () => `@compute @workgroup_size(1) fn main() {
  let before = select(at_into(0u), 0.0, s.isFirst == 1u);
  store_into(0u, select(before, 1.0, (bitcast<u32>(at_flag(0u)) & 0x7fffffffu) != 0u));
}
`,
  workgroups: () => [1, 1, 1],
  reference([flag, into], { isFirst }) {
    const before = isFirst ? 0 : into?.[0];
    if (into) into[0] = flag?.[0] === 0 ? (before as number) : 1;
  },
});

/**
 * Sets the float32 `into[0]` to 1 where the float32 `flag[0]` is not 0, and otherwise leaves it, or clears it if `isFirst`.
 */
export function combineFlags<B>(
  operands: { readonly flag: B; readonly into: B },
  { isFirst }: { readonly isFirst: boolean },
): Launch<B> {
  return {
    kernel,
    bindings: [operands.flag, operands.into].map((buffer) => ({
      ...{ buffer, offset: 0, length: 1, dtype: "float32" as const },
    })),
    scalars: { isFirst: Number(isFirst) },
  };
}
