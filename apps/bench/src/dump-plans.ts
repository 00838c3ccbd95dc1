import { chosenWorkloads, describeMachine } from "./benchmark.js";
import { halfstepLibrary } from "./lanes/halfstep.js";
import type { BenchOptions } from "./options.js";

/** The plan of each case that is chosen, in each precision: nothing is computed, and no peer is needed. */
export async function* dumpPlans(options: BenchOptions): AsyncGenerator<string> {
  const machine = await describeMachine(options.adapter);
  const library = halfstepLibrary(() => {});
  for (const { workload, isChosen } of chosenWorkloads(options, machine))
    for (const { name, precisions, on } of workload.cases.filter(isChosen))
      for (const precision of precisions) {
        const prepared = await on.halfstep?.(library, precision);
        if (!prepared) continue;
        const plan = prepared.plan?.();
        prepared.dispose?.();
        if (plan !== undefined) yield `${workload.name} ${name}, ${precision}\n${plan}\n`;
      }
}
