import type { ProgramContext } from "@halfstep/device";

/**
 * Whether the adapter is a CPU, as with Mesa's software driver. There loads (which run lane by lane), barriers and workgroup memory are
 * slow, and starting a workgroup takes as long as several items of work.
 */
export const isCpu = ({ hardware }: Pick<ProgramContext, "hardware">): boolean =>
  hardware?.class === "software";
