import { requestDevice } from "@halfstep/device";
import { gpuRuntime } from "@halfstep/tensor";
import { lineOf, ways } from "../../ledger/ledger.js";
import { type Steady, steadySteps } from "./steady.js";
import { contractFailures, type StoreKind } from "./stores.js";
import { type Ended, trainSaved } from "./train-saved.js";

// What pages and their workers do for the tests, called by name with plain data.

const wayOf = (name: string, precision: string) => {
  const way = ways.find((each) => each.name === name && each.precision === precision);
  if (!way) throw new RangeError(`the ledger has no ${name} in ${precision}`);
  return way;
};

export const jobs = {
  /** A line of the ledger. */
  async line(name: string, precision: string): Promise<string> {
    const device = await requestDevice();
    const line = await lineOf(gpuRuntime(device), wayOf(name, precision));
    device.destroy();
    return line;
  },
  contractFailures: (kind: StoreKind): Promise<readonly string[]> => contractFailures(kind),
  steadySteps: (): Promise<Steady> => steadySteps(),
  /** Trains from the newest checkpoint. How far it is, and what its device holds, is in `trained`. */
  trainSaved: (kind: StoreKind, run: string, maxSteps: number): Promise<Ended> =>
    trainSaved(kind, run, maxSteps, async (step, { live, pooled }) => {
      Object.assign(trained, { step, live, pooled });
      if (step >= trained.slowFrom) await new Promise((resolve) => setTimeout(resolve, 50));
    }),
};

/** For tests that interrupt training, or watch it. From the step `slowFrom` on, a pause follows each step: a test has time to interrupt. */
const trained = { step: 0, live: 0, pooled: 0, slowFrom: Number.POSITIVE_INFINITY };
Object.assign(globalThis, { trained });

export type Jobs = typeof jobs;
