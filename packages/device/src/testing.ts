import type { Tier } from "./capabilities.js";
import type { Device } from "./device.js";
import { requestDevice } from "./node.js";

type Wanted = "best" | "packed";

const shared = Symbol.for("@halfstep/device/testing");

/**
 * The device of a test process: one for the packed tier and one for the best tier of the adapter, shared by all test
 * files, and replaced after a failure. Throws without an adapter, and for "native" where the adapter lacks it: a GPU test
 * that cannot run must fail. Buffers that a test does not release stay counted in `memory`.
 */
export async function requestTestDevice({ tier }: { tier?: Tier } = {}): Promise<Device> {
  const holder = globalThis as { [shared]?: Map<Wanted, Promise<Device>> };
  holder[shared] ??= new Map();
  const devices = holder[shared];
  const wanted = tier === "packed" ? "packed" : "best";
  const earlier = devices.get(wanted);
  const isUsable = earlier !== undefined && (await earlier).failure === undefined;
  const promise = isUsable
    ? earlier
    : requestDevice({
        ...(wanted === "packed" ? { tier: wanted } : {}),
        label: `test device (${wanted})`,
      });
  devices.set(wanted, promise);
  const device = await promise;
  if (tier && device.capabilities.tier !== tier)
    throw new Error(
      `adapter "${device.capabilities.adapter.description}" has no working shader-f16: test the tiers of testTiers()`,
    );
  return device;
}

/**
 * The tiers that this machine's adapter can be tested on: `describe.each(await testTiers())`. Writes a line to stderr if
 * the native tier is missing.
 */
export async function testTiers(): Promise<readonly Tier[]> {
  const { capabilities } = await requestTestDevice();
  if (capabilities.tier === "native") return ["native", "packed"];
  console.warn(
    `the native tier is not tested: adapter "${capabilities.adapter.description}" has no working shader-f16`,
  );
  return ["packed"];
}
