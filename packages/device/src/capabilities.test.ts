import { expect, test } from "vitest";
import { probeCapabilities } from "./capabilities.js";
import { requestTestDevice, testTiers } from "./testing.js";

test.each(await testTiers())("the %s tier is what was asked for", async (tier) => {
  const { capabilities } = await requestTestDevice({ tier });
  expect(capabilities.tier).toBe(tier);
  expect(capabilities.features.has("shader-f16")).toBe(tier === "native");
  expect(capabilities.hasTimestamps).toBe(capabilities.features.has("timestamp-query"));
  expect(capabilities.adapter.description).not.toBe("");
});

test("the packed tier uses no subgroups", async () => {
  const { capabilities } = await requestTestDevice({ tier: "packed" });
  expect(capabilities.subgroupSize).toBe(0);
  expect(capabilities.features.has("subgroups")).toBe(false);
});

test("the subgroup size is one that the adapter names, or 0", async () => {
  const { capabilities, gpu } = await requestTestDevice();
  const { subgroupMinSize, subgroupMaxSize } = gpu.adapterInfo;
  const isKnown = capabilities.features.has("subgroups") && subgroupMinSize === subgroupMaxSize;
  expect(capabilities.subgroupSize).toBe(isKnown ? subgroupMinSize : 0);
});

test.each([
  ["is pinned where a device can do that", new Set(["subgroups", "subgroup-size-control"])],
  ["is not believed elsewhere, whatever was seen", new Set(["subgroups"])],
])("a size that the adapter says may vary %s", async (_, features) => {
  const { gpu, capabilities } = await requestTestDevice();
  const { subgroupSize } = capabilities;
  const varying = new Proxy(gpu, {
    get(target, name) {
      if (name === "adapterInfo") return { subgroupMinSize: 4, subgroupMaxSize: 32 };
      if (name === "features") return features;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const found = await probeCapabilities(varying, {});
  const isPinned = subgroupSize > 0 && features.has("subgroup-size-control");
  expect(found.subgroupSize).toBe(isPinned ? subgroupSize : 0);
  expect(found.hardware.pinsSubgroups ?? false).toBe(isPinned);
});

test("a tier that there is not is refused", async () => {
  const { gpu } = await requestTestDevice();
  const tier = "fast" as "native";
  await expect(probeCapabilities(gpu, { tier })).rejects.toThrow(
    'there is no tier "fast": ask for "native" or "packed", or for none',
  );
});

test("a class of hardware can be asked for", async () => {
  const { gpu } = await requestTestDevice();
  const { hardware } = await probeCapabilities(gpu, { hardwareClass: "nvidia" });
  expect(hardware.class).toBe("nvidia");
});

test("the adapter's information is used where the device has none, as in older browsers", async () => {
  const { gpu } = await requestTestDevice();
  const silent = new Proxy(gpu, {
    get(target, name) {
      if (name === "adapterInfo") return undefined;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const adapterInfo = { vendor: "Someone", subgroupMinSize: 4, subgroupMaxSize: 32 };
  const found = await probeCapabilities(silent, {
    adapterInfo: adapterInfo as unknown as GPUAdapterInfo,
  });
  expect(found.adapter.vendor).toBe("Someone");
  expect(found.hardware.class).toBe("someone");
  expect(found.hardware.pinsSubgroups ?? false).toBe(gpu.features.has("subgroup-size-control"));
  expect((await probeCapabilities(silent, {})).adapter.vendor).toBe("");
});
