import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { cpuRuntime, gpuRuntime, type Runtime } from "@halfstep/tensor";
import { lineOf, ways } from "./ledger.js";

/** The lines of the runners named that this machine has. The name of a GPU's ledger says the driver and the tier. */
export async function* ledgers(
  runners: readonly string[],
): AsyncGenerator<{ name: string; lines: readonly string[] }> {
  if (runners.includes("cpu")) yield { name: "cpu", lines: await linesOn(() => cpuRuntime()) };
  const tiers = (await testTiers()).filter((tier) => runners.includes(tier));
  for (const tier of tiers) {
    const device = await requestTestDevice({ tier });
    const { description } = device.capabilities.adapter;
    const driver = description.replace(/\W+/g, "-").replace(/^-|-$/g, "").toLowerCase();
    yield { name: `${driver}-${tier}`, lines: await linesOn(() => gpuRuntime(device)) };
  }
}

async function linesOn(runtime: () => Runtime): Promise<string[]> {
  const lines: string[] = [];
  for (const way of ways) lines.push(await lineOf(runtime(), way));
  return lines;
}
