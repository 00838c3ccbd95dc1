import type { Blocks } from "./block-table.js";

// Written by `npm run tune`.
export const measuredBlocks: Readonly<Record<string, Blocks>> = {
  software: {
    large: {},
    medium: {},
  },
};

/** The adapter that each was measured on. */
export const measuredOn: Readonly<Record<string, string>> = {
  software: "llvmpipe: Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6) 0.0.1",
};
