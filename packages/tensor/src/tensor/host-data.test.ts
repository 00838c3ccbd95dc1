import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { cpuRuntime, gpuRuntime } from "../index.js";

test.each([
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
] as const)("arrays of 8 and 16 bits are numbers: %s", async (_, open) => {
  const runtime = await open();
  const arrays = [
    ...[Uint8Array.of(255, 0, 7), Int8Array.of(-128, 127, 0), Uint8ClampedArray.of(255, 1, 2)],
    ...[Uint16Array.of(65_535, 1, 2), Int16Array.of(-32_768, 1, 2)],
  ];
  for (const data of arrays) {
    const tensors = await runtime.step(() => [
      runtime.tensor(data).mul(1),
      runtime.tensor(data, [3], { dtype: "int32" }).mul(1),
    ]);
    for (const each of [...tensors, runtime.tensor(data), runtime.variable(data, [3])])
      expect([...(await each.toArray())]).toEqual([...data]);
    expect(tensors.map(({ dtype }) => dtype)).toEqual(["float32", "int32"]);
    const mask = runtime.tensor(data, [3], { dtype: "bool" });
    expect([...(await mask.toArray("uint32"))]).toEqual([...data].map((each) => +(each !== 0)));
  }
});
