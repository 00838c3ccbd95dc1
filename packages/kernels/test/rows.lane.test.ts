import { requestDevice } from "@halfstep/device/node";
import { expect, test } from "vitest";
import { type RowsCase, rowMismatches, title } from "./softmax-rows.js";

// Programs over rows as GPUs run them: teams own rows, and keep those that fit in registers; quads of 16 bits move in pairs.

const device = await requestDevice({ hardwareClass: "a GPU", label: "rows" });

/** The most elements of a row that the registers of a subgroup hold, and of a workgroup of 256. */
const [most, mostOfWorkgroup] = [(device.capabilities.subgroupSize || 64) * 32, 256 * 32];

/**
 * Rows that the registers of a team hold, and longer ones, with tails; in whole quads, in pairs of them and in neither; of invocations,
 * subgroups and workgroups.
 */
const cases: readonly RowsCase[] = [
  { rows: 5, columns: 24, storage: "float16" },
  { rows: 3, columns: 40, storage: "bfloat16", ignoreIndex: 2 },
  { rows: 3, columns: most - 4, storage: "float16" },
  { rows: 2, columns: most, storage: "bfloat16" },
  { rows: 2, columns: most + 4, storage: "float16" },
  { rows: 2, columns: most + 8, storage: "float16", ignoreIndex: 0 },
  { rows: 2, columns: mostOfWorkgroup, storage: "float16" },
  { rows: 2, columns: mostOfWorkgroup },
  { rows: 2, columns: mostOfWorkgroup + 8, storage: "bfloat16" },
  { rows: 3, columns: 36, ignoreIndex: 2 },
  { rows: 2, columns: 256, storage: "float16" },
  { rows: 3, columns: 260 },
  { rows: 6, columns: 35, storage: "bfloat16" },
  { rows: 5, columns: 301, ignoreIndex: 1 },
  { rows: 3, columns: 4100, storage: "float16", ignoreIndex: 0 },
  { rows: 5, columns: 4099 },
  { rows: 0, columns: 64 },
];

test.each(cases.map((each) => [title(each), each] as const))("%s", async (_, attributes) => {
  expect(await rowMismatches(device, attributes)).toEqual([]);
});
