import type { DType } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { expect, test } from "vitest";
import { engineReport } from "../src/engine-report.js";
import { matmulWithRowSums } from "../src/matmul/with-row-sums.js";
import { type MatmulAttributes, matmul } from "../src/matmul.js";
import { mismatches, runOnCpu, runOnGpu, testValues, unitRoundoff } from "./harness.js";

// Products by hardware matrices, on drivers that multiply them: `npm run lanes` runs this on a software driver that does.

interface Case extends MatmulAttributes {
  readonly storage: DType;
  readonly rowSums?: boolean;
}

/** Each transposition, edges, batches, a k in parts, large blocks, 8-bit storage, and sums of rows. */
const cases: readonly Case[] = [
  { m: 66, n: 68, k: 40, storage: "float16" },
  { m: 65, n: 66, k: 37, batch: 2, transB: true, storage: "float16" },
  { m: 36, n: 35, k: 33, transA: true, storage: "float16", rowSums: true },
  { m: 64, n: 64, k: 64, transA: true, transB: true, storage: "float16" },
  { m: 32, n: 35, k: 1029, storage: "float16" },
  { m: 129, n: 132, k: 20, batch: 24, storage: "float16" },
  { m: 33, n: 34, k: 35, transB: true, storage: "float8e4m3fn" },
];

const title = ({ storage, ...shape }: Case): string => `${JSON.stringify(shape)} ${storage}`;

// The class of no vendor: the blocks of a GPU where nothing was measured.
const device = await requestDevice({ hardwareClass: "a GPU", label: "matrices" });

test("the device multiplies matrices of float16", () => {
  expect(device.capabilities.hardware.subgroupMatrices).toContainEqual(
    expect.objectContaining({ component: "f16" }),
  );
  expect(engineReport(device)).toMatchObject({ float16: expect.stringMatching(/^matrices of /) });
});

test.each(cases.map((each) => [title(each), each] as const))("%s", async (_, shape) => {
  const { m, n, k, batch = 1, storage, rowSums } = shape;
  const product = rowSums ? matmulWithRowSums : matmul;
  const operands = {
    a: { values: testValues(batch * m * k, 1), dtype: storage },
    b: { values: testValues(batch * k * n, 2), dtype: storage },
    out: { values: batch * m * n },
    sums: { values: batch * m },
  } as const;
  let code = "";
  const found = await runOnGpu(device, operands, (target, { a, b, out, sums }) =>
    product(
      {
        allocate: (bytes) => target.allocate(bytes),
        launch(launch) {
          const { hardware, subgroupSize, tier } = device.capabilities;
          const { kernel, bindings } = launch;
          code += kernel.program({ tier, subgroupSize, hardware, bindings }).code;
          target.launch(launch);
        },
      },
      { a, b, out, rowSums: sums },
      shape,
    ),
  );
  expect(code).toContain("subgroupMatrixMultiplyAccumulate");
  const expected = runOnCpu(operands, (target, { a, b, out, sums }) =>
    product(target, { a, b, out, rowSums: sums }, shape),
  );
  // Sums of these values are exact in float32, in any order.
  const exactly = { relative: unitRoundoff.float32, absolute: 0 };
  expect(mismatches(found.out, expected.out, exactly)).toEqual([]);
  if (rowSums) expect(mismatches(found.sums, expected.sums, exactly)).toEqual([]);
});
