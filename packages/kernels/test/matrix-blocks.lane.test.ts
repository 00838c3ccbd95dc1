import type { DType } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { describe, expect, test } from "vitest";
import { hardwareWithBlocks } from "../bench/pretended-blocks.js";
import type { MatrixBlock } from "../src/matmul/block-table.js";
import { matmulWithRowSums } from "../src/matmul/with-row-sums.js";
import { type MatmulAttributes, matmul } from "../src/matmul.js";
import {
  mismatches,
  runOnCpu,
  runOnGpu,
  testValues,
  unitRoundoff,
  withHardware,
} from "./harness.js";

// Each way in which a block of hardware matrices loads factors and stores results: `npm run lanes`.

const device = await requestDevice({ label: "matrix blocks" });

interface Case extends MatmulAttributes {
  readonly storage?: DType;
  readonly rowSums?: boolean;
  /** The WGSL types of copied factors. */
  readonly copies: readonly string[];
  /** Parts of k. Default 1. */
  readonly parts?: number;
}

const sixteen = ["vec4<u32>", "vec4<u32>"];
const eight = ["vec2<u32>", "vec2<u32>"];

/** Products with edges in m and n, and with a k that ends inside a step. */
const cases: readonly Case[] = [
  // Sixteen bytes of each factor at a time, in each transposition.
  { m: 37, n: 40, k: 40, copies: sixteen },
  { m: 33, n: 35, k: 56, transB: true, copies: sixteen },
  { m: 40, n: 48, k: 41, transA: true, copies: sixteen },
  { m: 40, n: 41, k: 56, transA: true, transB: true, copies: sixteen },
  // Eight bytes of both, and of one beside a factor that is decoded.
  { m: 38, n: 36, k: 24, copies: eight },
  { m: 37, n: 40, k: 33, batch: 2, copies: eight.slice(1) },
  { m: 36, n: 35, k: 33, transA: true, transB: true, copies: eight.slice(1) },
  // Parts of k, and the sums of rows of a copied factor.
  { m: 32, n: 40, k: 2056, copies: sixteen, parts: 2 },
  { m: 40, n: 32, k: 2053, parts: 2, transA: true, rowSums: true, copies: sixteen },
  { m: 36, n: 40, k: 33, transA: true, rowSums: true, copies: eight },
  // Decoded alone.
  { m: 40, n: 40, k: 40, storage: "float8e5m2", copies: [] },
];

const title = ({ copies: _, parts: __, storage = "float16", ...shape }: Case): string =>
  `${JSON.stringify(shape)} ${storage}`;

async function check(block: MatrixBlock, shape: Case): Promise<void> {
  const { m, n, k, batch = 1, storage = "float16", rowSums, copies, parts = 1 } = shape;
  const only = { matrix: [block] };
  const name = Object.values(block).join(" ");
  const hardware = hardwareWithBlocks(
    device.capabilities.hardware,
    ...([name, { large: only, medium: only }] as const),
  );
  const a = testValues(batch * m * k, 1);
  // What is not a number in one product must not reach another: loads go past the ends of rows.
  if (batch > 1) a.fill(Number.NaN, m * k);
  const product = rowSums ? matmulWithRowSums : matmul;
  const operands = {
    a: { values: a, dtype: storage },
    b: { values: testValues(batch * k * n, 2), dtype: storage },
    out: { values: batch * m * n },
    sums: { values: batch * m },
  } as const;
  let code = "";
  let splits: number | undefined;
  const found = await runOnGpu(device, operands, (target, { a, b, out, sums }) => {
    const pretending = withHardware(target, hardware);
    product(
      {
        hardwareClass: hardware.class,
        allocate: (bytes) => target.allocate(bytes),
        launch(launch) {
          splits = launch.scalars.splits;
          const { subgroupSize, tier } = device.capabilities;
          const { kernel, bindings } = launch;
          code += kernel.program({ tier, subgroupSize, hardware, bindings }).code;
          pretending.launch(launch);
        },
      },
      { a, b, out, rowSums: sums },
      shape,
    );
  });
  expect(splits).toBe(parts);
  expect(code).toContain("subgroupMatrixMultiplyAccumulate");
  expect([...code.matchAll(/fn stored_\w+\(i: u32\) -> (\S+)/g)].map(([, type]) => type)).toEqual(
    copies,
  );
  const expected = runOnCpu(operands, (target, { a, b, out, sums }) =>
    product(target, { a, b, out, rowSums: sums }, shape),
  );
  // Sums of these values are exact in float32, in any order.
  const exactly = { relative: unitRoundoff.float32, absolute: 0 };
  expect(mismatches(found.out, expected.out, exactly)).toEqual([]);
  if (rowSums) expect(mismatches(found.sums, expected.sums, exactly)).toEqual([]);
}

const small = { rows: 32, columns: 32, depth: 16, subgroupRows: 16, subgroupColumns: 16 };

describe.each([1, 2] as const)("in %i stages", (stages) => {
  test.each(cases.map((each) => [title(each), each] as const))("%s", async (_, shape) => {
    await check({ ...small, stages }, shape);
  });
});

/** Blocks of the sizes for large products that this driver's 32 KiB hold, in parts that 8 lanes can hold. */
const large: readonly MatrixBlock[] = [
  { rows: 128, columns: 128, depth: 32, subgroupRows: 32, subgroupColumns: 16, stages: 1 },
  { rows: 128, columns: 128, depth: 16, subgroupRows: 32, subgroupColumns: 16, stages: 2 },
  { rows: 256, columns: 64, depth: 32, subgroupRows: 32, subgroupColumns: 16, stages: 1 },
];

test.each(large.map((block) => [Object.values(block).join("×"), block] as const))(
  "a large block of %s",
  async (_, block) => {
    await check(block, { m: 260, n: 136, k: 136, transB: true, copies: sixteen });
  },
);
