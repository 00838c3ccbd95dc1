import type { SetupId } from "../train/setups.js";
import type { DeviceReport } from "./measure.js";

/** What decides about bits, as far as an adapter tells: its name, how it holds float16, and the size of its subgroups. */
export const adapterKey = ({
  adapter,
  tier,
  subgroupSize,
}: Pick<DeviceReport, "adapter" | "tier" | "subgroupSize">): string =>
  `${adapter}, ${tier}, ${subgroupSize}`;

/** Hashes of parameters by adapter. One that is missing is compared with the CPU by its loss. */
export const knownHashes: Readonly<Record<string, Readonly<Partial<Record<SetupId, string>>>>> = {
  // Chromium 156, which the browser tests run.
  "google swiftshader, packed, 4": {
    float32: "c097fb7d2d0b0e9d78e61dfbfe1074ea",
    float16: "015e1e076ccec2f51040100f95b7ba98",
    bfloat16: "7c6c2d1fcbaf3608cfaab7dc95e7a1a3",
  },
  // Mesa's software driver, to which the tests give this name: browsers accept no other on a CPU.
  "google swiftshader, native, 8": {
    float32: "f99ad76f169365662b8a473690888392",
    float16: "cc2f6edf84b3628ab1ec3b084f1e26f2",
    bfloat16: "7c6c2d1fcbaf3608cfaab7dc95e7a1a3",
  },
};
