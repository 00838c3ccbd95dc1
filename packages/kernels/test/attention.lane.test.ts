import { requestDevice } from "@halfstep/device/node";
import { expect, test } from "vitest";
import {
  type Case,
  type CaseOperands,
  definition,
  launchesOf,
  operandsOf,
} from "./attention-cases.js";
import { mismatches, runOnGpu, withHardware } from "./harness.js";

// Attention by hardware matrices, on drivers that multiply them: `npm run lanes` runs this on a software driver that does.

const plain = { lead: [2], queries: 40, keys: 40, storage: "float16" } as const;

/** Causal masks, other masks, windows and groups; one query, tails, several blocks; all widths of blocks. */
const cases: readonly Case[] = [
  { ...plain, size: 16, queries: 200, keys: 200, isCausal: true },
  { ...plain, size: 16, queries: 1, keys: 33 },
  { ...plain, size: 16, queries: 1, keys: 1, window: 4 },
  { ...plain, size: 16, queries: 7, keys: 0 },
  { ...plain, size: 40, queries: 33, keys: 71 },
  { ...plain, lead: [2, 2], size: 64, mask: ["flags", [2, 1, 40, 40]], p: 0.25 },
  { ...plain, lead: [2, 2], size: 80, mask: ["lengths", [2, 1]], isCausal: true },
  { ...plain, lead: [2, 4], group: 2, size: 32, queries: 70, keys: 70, isCausal: true },
  { ...plain, lead: [6], group: 3, size: 64, queries: 200, keys: 130, window: 21 },
  { ...plain, lead: [2, 2], group: 2, size: 17, width: 30, window: 0, isCausal: true },
  { ...plain, lead: [1], size: 256, queries: 37 },
  { ...plain, lead: [4], group: 4, size: 256, width: 64, queries: 70, isCausal: true, window: 30 },
  { ...plain, size: 80, queries: 9, keys: 200, mask: ["flags", [9, 200]] },
  { ...plain, size: 128, width: 96, mask: ["added", [40, 40]] },
];

const title = ({ storage, ...shape }: Case): string => `${JSON.stringify(shape)} ${storage}`;

// The class of no vendor: the blocks of a GPU where nothing was measured.
const device = await requestDevice({ hardwareClass: "a GPU", label: "matrices" });

const passes = ["attention", "attentionQueryGradient", "attentionKeyValueGradient"];

/** Weights are rounded to float16, and so are results. */
const rounding = 2 ** -11;
const tolerances = {
  out: { relative: rounding, absolute: rounding },
  normalizers: { relative: 2 ** -20, absolute: 2 ** -20 },
  queryGradient: { relative: rounding, absolute: 4 * rounding },
  keyGradient: { relative: rounding, absolute: 4 * rounding },
  valueGradient: { relative: rounding, absolute: 4 * rounding },
};

test.each(cases.map((each) => [title(each), each] as const))("%s", (_, attended) =>
  compare(attended, operandsOf(attended)),
);

test("scores that grow from step to step", async () => {
  const attended: Case = { ...plain, size: 16, queries: 70, keys: 200 };
  const operands = operandsOf(attended);
  const { key } = operands;
  // The maximum of a row rises by more than the weights' slack, now and then, or by less.
  for (const i of key.values.keys()) key.values[i] = (key.values[i] as number) * ((i >> 7) % 16);
  // Rounding of weights counts as much as these are large.
  await compare(attended, operands, 16);
});

test.each(["attention", "gradients"])("%s by rows, with the other passes on matrices", (byRows) => {
  const attended: Case = { ...plain, size: 64, queries: 70, keys: 90, isCausal: true, p: 0.5 };
  return compare(attended, operandsOf(attended), 1, (name) =>
    byRows === "attention" ? name === "attention" : name !== "attention",
  );
});

test("gradients of scores beyond float16 are not finite", async () => {
  const attended: Case = { ...plain, lead: [1], size: 16, keys: 2 };
  const operands = operandsOf(attended);
  const { value, outGradient } = operands;
  outGradient.values.fill(30_000);
  for (const i of value.values.keys()) value.values[i] = i < 16 ? 1 : -1;
  const { queryGradient } = await runOnGpu(device, operands, launchesOf(attended));
  expect([...queryGradient].some((x) => !Number.isFinite(x))).toBe(true);
});

/** Compares the results on matrices with those in float64. */
async function compare(
  attended: Case,
  operands: CaseOperands,
  margin = 1,
  isByRows: (name: string) => boolean = () => false,
): Promise<void> {
  const matrices = new Set<string>();
  const found = await runOnGpu(device, operands, (target, bound) => {
    const { hardware, subgroupSize, tier } = device.capabilities;
    const rows = withHardware(target, { ...hardware, class: "software" });
    launchesOf(attended)(
      {
        allocate: (bytes) => target.allocate(bytes),
        launch(launch) {
          const { kernel, bindings } = launch;
          if (isByRows(kernel.name)) return rows.launch(launch);
          const { code } = kernel.program({ tier, subgroupSize, hardware, bindings });
          if (code.includes("subgroupMatrixMultiplyAccumulate")) matrices.add(kernel.name);
          target.launch(launch);
        },
      },
      bound,
    );
  });
  expect([...matrices]).toEqual(passes.filter((name) => !isByRows(name)));
  const want = definition(attended, operands);
  for (const name of Object.keys(tolerances) as (keyof typeof tolerances)[]) {
    const { relative, absolute } = tolerances[name];
    const tolerance = { relative, absolute: margin * absolute };
    expect([name, ...mismatches(found[name], want[name], tolerance)]).toEqual([name]);
  }
}
