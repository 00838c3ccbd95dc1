import type { Blocks } from "./block-table.js";

// Written by `npm run tune`; each class names the adapter on which it was measured.
export const measuredBlocks: Readonly<Record<string, Blocks>> = {
  // llvmpipe: barriers cost more than they save.
  software: { large: {}, medium: {} },
};
