import type { LaunchTarget } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { expect, test } from "vitest";
import { deviceMismatches, withoutSubgroups } from "./harness.js";
import {
  groupCases,
  launchesOf,
  type NormCase,
  operandsOf,
  outlierMismatches,
  placeMismatches,
  results,
  rows,
  title,
  toleranceOf,
} from "./norm-cases.js";

// Norms as GPUs run them: teams own rows and large groups, keep rows that fit in registers; quads of 16 bits move in pairs.

const device = await requestDevice({ hardwareClass: "a GPU", label: "rows of norms" });

/** The most elements of a row that the registers of a subgroup hold, and of a workgroup of 256. */
const [most, mostOfWorkgroup] = [(device.capabilities.subgroupSize || 64) * 32, 256 * 32];

/** Few rows, which workgroups own, and many; as long as the registers hold, with tails, and one quad or pair of quads longer. */
const cases: readonly NormCase[] = [
  rows(3, 64),
  rows(70, most),
  { ...rows(66, most + 4), affine: "weight" },
  { ...rows(70, most), storage: "float16" },
  { ...rows(66, most - 4), storage: "bfloat16", affine: "bias" },
  { ...rows(65, most - 8), storage: "bfloat16", isRms: true },
  { ...rows(66, most + 4), storage: "float16", isRms: true, affine: "none" },
  { ...rows(66, most + 8), storage: "float16" },
  { ...rows(65, 3 * most + 8), storage: "bfloat16", affine: "none" },
  { ...rows(67, 72), storage: "float16", affine: "none" },
  { ...rows(5, 24), storage: "float16" },
  { ...rows(5, 28), storage: "bfloat16" },
  rows(2, mostOfWorkgroup),
  { ...rows(3, mostOfWorkgroup), storage: "float16" },
  { ...rows(2, mostOfWorkgroup + 8), storage: "bfloat16" },
  { ...rows(1, mostOfWorkgroup + 4), isRms: true },
  { ...rows(0, 128), storage: "float16" },
];

const mismatchesOf = async (attributes: NormCase, margin: number, away = 0) => {
  const operands = operandsOf(attributes);
  const { values } = operands.input;
  for (let i = 0; i < values.length; i++) (values[i] as number) += away;
  const tolerance = toleranceOf(attributes, margin);
  const tolerances = Object.fromEntries(results.map((name) => [name, tolerance]));
  return deviceMismatches(device, operands, launchesOf(attributes), tolerances);
};

test.each(cases.map((each) => [title(each), each] as const))("%s", async (_, attributes) => {
  expect(await mismatchesOf(attributes, 32)).toEqual([]);
});

test.each([
  rows(70, 136),
  rows(66, 516),
  rows(3, 1028),
  { ...rows(66, 520), storage: "bfloat16" as const },
])("rows with outliers, by subgroups and without", async (attributes) => {
  const places = [<B>(target: LaunchTarget<B>) => target, withoutSubgroups];
  expect(await outlierMismatches(device, attributes, places)).toEqual([]);
});

test.each(groupCases.map((each) => [title(each), each] as const))(
  "groups %s, by subgroups and without",
  async (_, attributes) => {
    const places = [<B>(target: LaunchTarget<B>) => target, withoutSubgroups];
    expect(await placeMismatches(device, attributes, places)).toEqual([]);
  },
);

test("a row in registers loses no digits where its mean is far from zero", async () => {
  // Its deviations are multiples of 2^-7, which float32 holds beside 4096.
  expect(await mismatchesOf(rows(70, most), 8, 4096)).toEqual([]);
});
