import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { NoAdapterError } from "./index.js";
import { listAdapters, requestDevice } from "./node.js";
import { requestTestDevice } from "./testing.js";

test("adapters are listed, and chosen by a part of their name or by index", async () => {
  const names = await listAdapters();
  expect(names.length).toBeGreaterThan(0);
  const name = names[0] as string;
  const chosen = await Promise.all(
    [0, "0", name, name.slice(0, 5).toUpperCase()].map((adapter) => requestDevice({ adapter })),
  );
  const { description } = chosen[0]?.capabilities.adapter ?? {};
  expect(chosen.map((d) => d.capabilities.adapter.description)).toEqual(Array(4).fill(description));
  for (const device of chosen) device.destroy();
});

test("an adapter that does not exist is answered with those that do", async () => {
  const names = await listAdapters();
  // A number of at most two digits is no part of a name, such as one in a version.
  for (const adapter of ["no such GPU", 99, "15"]) {
    const error = await requestDevice({ adapter }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(NoAdapterError);
    expect(String(error)).toContain(`0 "${names[0]}"`);
  }
});

test("HALFSTEP_ADAPTER chooses where no option does", async () => {
  const before = process.env.HALFSTEP_ADAPTER;
  process.env.HALFSTEP_ADAPTER = "no such GPU";
  try {
    await expect(requestDevice()).rejects.toBeInstanceOf(NoAdapterError);
  } finally {
    if (before === undefined) delete process.env.HALFSTEP_ADAPTER;
    else process.env.HALFSTEP_ADAPTER = before;
  }
});

test("Mesa's software driver divides dispatches among two threads a core, unless told otherwise", async () => {
  const { capabilities } = await requestTestDevice();
  const wanted = Number(process.env.LP_NUM_THREADS);
  expect(wanted).toBeGreaterThan(0);
  if (!capabilities.adapter.description.startsWith("llvmpipe")) return;
  const names = readdirSync("/proc/self/task").map((id) =>
    readFileSync(`/proc/self/task/${id}/comm`, "utf8").trim(),
  );
  const threads = new Set(names.filter((name) => name.startsWith("llvmpipe-")));
  expect(threads.size).toBe(wanted);
});

test("the device has every limit of its adapter, and refuses features that are not there", async () => {
  const { gpu } = await requestTestDevice();
  expect(gpu.limits.maxStorageBuffersPerShaderStage).toBeGreaterThan(8);
  await expect(requestDevice({ features: ["shader-f128"] })).rejects.toThrow(
    "the adapter lacks shader-f128",
  );
});

test("a software adapter has a budget below the machine's memory, unless told otherwise", async () => {
  const device = await requestDevice({ memoryBudget: 12_345 });
  expect(device.memory.budget).toBe(12_345);
  device.destroy();
  const shared = await requestTestDevice();
  expect(Number.isFinite(shared.memory.budget)).toBe(shared.capabilities.adapter.isFallback);
});

test("the test device is shared until it fails", async () => {
  const device = await requestTestDevice({ tier: "packed" });
  expect(await requestTestDevice({ tier: "packed" })).toBe(device);
  device.destroy();
  const next = await requestTestDevice({ tier: "packed" });
  expect(next).not.toBe(device);
  expect(next.failure).toBeUndefined();
});

test.each([
  [{ powerPreference: "low-power" }, "there is no option powerPreference; pass any of tier,"],
  [null, "the options are null; pass an object"],
  ["gpu", 'the options are "gpu"; pass an object'],
  [{ memoryBudget: -1 }, "memoryBudget is -1; it must be bytes, a number above 0"],
  [{ memoryBudget: Number.NaN }, "memoryBudget is NaN; it must be bytes, a number above 0"],
  [{ features: "shader-f16" }, 'features is "shader-f16"; it must be a list of names'],
  [{ label: 5 }, "label is 5; it must be a text"],
])("options without a meaning are refused: %j", async (options, text) => {
  await expect(requestDevice(options as never)).rejects.toThrow(`requestDevice(options): ${text}`);
});
