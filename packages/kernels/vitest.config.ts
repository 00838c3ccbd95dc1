import { manyNarrowPrograms, onBestTier } from "@halfstep/vitest";

export default manyNarrowPrograms({ env: onBestTier });
