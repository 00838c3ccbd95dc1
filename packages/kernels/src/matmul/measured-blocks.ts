import type { Blocks } from "./block-table.js";

// Written by `npm run tune`.
export const measuredBlocks: Readonly<Record<string, Blocks & { readonly adapter: string }>> = {
  software: {
    adapter: "llvmpipe: Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6) 0.0.1",
    large: {},
    medium: {},
  },
};
