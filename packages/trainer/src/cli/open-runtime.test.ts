import { requestDevice } from "@halfstep/device/node";
import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { openRuntime, productNotes } from "./open-runtime.js";

test("a GPU says how it multiplies matrices, and what it lacks to do so in hardware", async () => {
  const device = await requestDevice({ hardwareClass: "a GPU" });
  const { subgroupMatrices } = device.capabilities.hardware;
  const [products, ...warnings] = productNotes(device);
  expect(products).toMatch(/^float16 products: (blocks|matrices) of /);
  expect(warnings).toHaveLength(subgroupMatrices.length > 0 ? 0 : 1);
  for (const warning of warnings)
    expect(warning).toMatch(/^warning: float16 products use no hardware matrices: /);
  device.destroy();
});

test("a software adapter says nothing of it", async () => {
  const { capabilities } = await requestTestDevice();
  const notes: string[] = [];
  const { close } = await openRuntime({ onNote: (note) => notes.push(note) });
  close();
  expect(notes.length > 0).toBe(capabilities.hardware.class !== "software");
});
