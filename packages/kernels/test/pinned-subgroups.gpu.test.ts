import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { matmul } from "../src/matmul.js";
import { softmax } from "../src/softmax.js";
import { type Launches, mismatches, runOnGpu, testValues, withHardware } from "./harness.js";

// Devices whose subgroups vary in size run programs that pin one. This adapter has one size: results have the same bits, pinned or not.

const device = await requestTestDevice();
const { tier, subgroupSize, hardware } = device.capabilities;
const varying = { ...hardware, pinsSubgroups: true };
const [rows, columns] = [16, 300];

const operands = {
  a: { values: testValues(rows * columns, 1) },
  b: { values: testValues(columns * rows, 2) },
  product: { values: rows * rows },
  shares: { values: rows * columns },
} as const;

const launches: Launches<typeof operands> = (target, { a, b, product, shares }) => {
  matmul(target, { a, b, out: product }, { m: rows, n: rows, k: columns });
  target.launch(softmax({ input: a, out: shares }, { rows, columns }));
};

test("programs whose lanes work together pin the size of subgroups where it varies", async () => {
  expect(device.gpu.features.has("subgroup-size-control" as GPUFeatureName)).toBe(true);
  const codes: string[] = [];
  const pinned = await runOnGpu(device, operands, (target, named) => {
    const pinning = withHardware(target, varying);
    const recording: typeof target = {
      allocate: (bytes) => target.allocate(bytes),
      launch(launch) {
        const { kernel, bindings } = launch;
        const context = { tier, subgroupSize, hardware: varying, bindings };
        codes.push(kernel.program(context).code);
        pinning.launch(launch);
      },
    };
    launches(recording, named);
  });
  expect(codes).toHaveLength(2);
  for (const code of codes) expect(code).toContain("@subgroup_size(");
  const found = await runOnGpu(device, operands, launches);
  for (const name of ["product", "shares"] as const)
    expect(mismatches(pinned[name], found[name], { relative: 0, absolute: 0 })).toEqual([]);
});
