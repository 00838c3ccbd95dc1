import { requestDevice } from "@halfstep/device";
import { gpuRuntime } from "@halfstep/tensor";
import { lineOf, ways } from "../../ledger/ledger.js";

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
};

export type Jobs = typeof jobs;
