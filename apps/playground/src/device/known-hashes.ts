import type { SetupId } from "../train/setups.js";

/** Hashes of parameters by what an adapter calls itself. An adapter that is missing is compared with the CPU by its loss. */
export const knownHashes: Readonly<Record<string, Readonly<Partial<Record<SetupId, string>>>>> = {
  // Chromium 156, which the browser tests run.
  "google swiftshader": {
    float32: "c097fb7d2d0b0e9d78e61dfbfe1074ea",
    float16: "015e1e076ccec2f51040100f95b7ba98",
    bfloat16: "7c6c2d1fcbaf3608cfaab7dc95e7a1a3",
  },
};
