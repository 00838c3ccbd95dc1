import type { Tier } from "./capabilities.js";
import type { Device } from "./device.js";
import { requestDevice } from "./node.js";

const shared = Symbol.for("@halfstep/device/testing");

/**
 * The device of a test process: one for each tier, shared by its test files, and a fresh one after a failure. Throws
 * without an adapter: a GPU test that cannot run must fail. Buffers that a test keeps stay counted in `memory`.
 */
export async function requestTestDevice({ tier }: { tier?: Tier } = {}): Promise<Device> {
  const holder = globalThis as { [shared]?: Map<Tier | undefined, Promise<Device>> };
  holder[shared] ??= new Map();
  const devices = holder[shared];
  const earlier = devices.get(tier);
  if (earlier && !(await earlier).failure) return earlier;
  const device = requestDevice({
    ...(tier === undefined ? {} : { tier }),
    label: `test device (${tier ?? "any tier"})`,
  });
  devices.set(tier, device);
  return device;
}

/**
 * The tiers that this machine's adapter can be tested on: `describe.each(await testTiers())`. When it lacks the native
 * tier, one line on stderr says so.
 */
export async function testTiers(): Promise<readonly Tier[]> {
  const { capabilities } = await requestTestDevice();
  if (capabilities.tier === "native") return ["native", "packed"];
  console.warn(
    `the native tier is not tested: adapter "${capabilities.adapter.description}" has no working shader-f16`,
  );
  return ["packed"];
}
