import type { Tier } from "./capabilities.js";
import type { Device } from "./device.js";
import { requestDevice } from "./node.js";

/** A tier of test devices. The device of tier "packed" uses no subgroups, even where the adapter has them. */
export type TestTier = Tier | "packed with subgroups";

type Wanted = "best" | "packed";

const shared = Symbol.for("@halfstep/device/testing");

/**
 * The device of a test process: one for the packed tier and one for the best tier of the adapter, shared by all test
 * files, and replaced after a failure. Throws without an adapter, and for a tier that the adapter lacks: a GPU test that
 * cannot run must fail. Buffers that a test does not release stay counted in `memory`. The variable
 * `HALFSTEP_TEST_HARDWARE_CLASS` replaces the adapter's class of hardware: programs for GPUs run on software adapters.
 */
export async function requestTestDevice({ tier }: { tier?: TestTier } = {}): Promise<Device> {
  const holder = globalThis as { [shared]?: Map<Wanted, Promise<Device>> };
  holder[shared] ??= new Map();
  const devices = holder[shared];
  const wanted = tier === "packed" ? "packed" : "best";
  const earlier = devices.get(wanted);
  const isUsable = earlier !== undefined && (await earlier).failure === undefined;
  const promise = isUsable ? earlier : openTestDevice(wanted);
  devices.set(wanted, promise);
  const device = await promise;
  if (wanted === "best" && tier && bestTier(device) !== tier)
    throw new Error(
      `the best tier of adapter "${device.capabilities.adapter.description}" is ${bestTier(device)}, not ${tier}: test the tiers of testTiers()`,
    );
  return device;
}

/**
 * The tiers that this machine's adapter can be tested on, the best first: `describe.each(await testTiers())`. Writes a line
 * to stderr if the native tier is missing. With the variable `HALFSTEP_TEST_TIERS=best` it is the best alone.
 */
export async function testTiers(): Promise<readonly TestTier[]> {
  const device = await requestTestDevice();
  const best = bestTier(device);
  if (best !== "native")
    console.warn(
      `the native tier is not tested: adapter "${device.capabilities.adapter.description}" has no working shader-f16`,
    );
  const isAlone = best === "packed" || process.env.HALFSTEP_TEST_TIERS === "best";
  return isAlone ? [best] : [best, "packed"];
}

function openTestDevice(wanted: Wanted): Promise<Device> {
  const hardwareClass = process.env.HALFSTEP_TEST_HARDWARE_CLASS;
  return requestDevice({
    ...(wanted === "packed" && { tier: wanted }),
    ...(hardwareClass && { hardwareClass }),
    label: `test device (${wanted})`,
  });
}

/** The tier of a device that was opened with all that its adapter has. */
function bestTier({ capabilities: { tier, subgroupSize } }: Device): TestTier {
  return tier === "packed" && subgroupSize > 0 ? "packed with subgroups" : tier;
}
