import type { ProgramContext } from "@halfstep/device";

/**
 * Whether a CPU computes what the adapter is asked for, as with Mesa's software driver. There loads are dear (each lane's are taken one by one), barriers and workgroup
 * memory too, and starting a workgroup takes as long as several items of work.
 */
export const isCpu = ({ hardware }: Pick<ProgramContext, "hardware">): boolean =>
  hardware?.class === "software";
