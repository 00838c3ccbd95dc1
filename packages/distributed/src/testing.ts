import type { Carrier } from "./carrier.js";
import { carriersOver, type InProcessOptions } from "./in-process/in-process.js";
import { type SimulationOptions, simulatedNetwork } from "./in-process/simulated-network.js";

export type { SimulationOptions } from "./in-process/simulated-network.js";

/**
 * Carriers of `size` ranks in this process, over a simulated network with random delays, reordering and losses. Deadlines count on its
 * virtual clock.
 */
export const simulated = (
  size: number,
  { seed, delay, loss, ...options }: InProcessOptions & SimulationOptions,
): readonly Carrier[] =>
  carriersOver(
    simulatedNetwork({
      seed,
      ...(delay !== undefined && { delay }),
      ...(loss !== undefined && { loss }),
    }),
    size,
    options,
  );
