import { expect, test } from "vitest";
import { noCalls } from "../calls.js";
import type { Measured, Report, Row } from "../results.js";
import { spreadOf } from "../statistics.js";
import {
  formatBytes,
  formatMilliseconds,
  formatPercent,
  formatRate,
  formatTimes,
} from "./format.js";
import { htmlOf } from "./html.js";
import { markdownOf } from "./markdown.js";
import { tablesOf } from "./tables.js";

const measured = (milliseconds: number, more: Partial<Measured> = {}): Measured => ({
  status: "measured",
  milliseconds: {
    median: milliseconds,
    least: milliseconds,
    quartiles: [milliseconds, milliseconds],
    count: 5,
  },
  processes: [0, 1].map((process) => ({ process: process + 1, rounds: 3, milliseconds })),
  hostMicroseconds: 50,
  callsPerStep: { ...noCalls, submits: 1, dispatches: 7 },
  peakBytes: 2 ** 21,
  difference: 1e-6,
  ratio: 1,
  fractionOfLimit: 0.5,
  ...more,
});

const row = (more: Partial<Row>): Row => ({
  workload: "gemm",
  title: "Matrix product",
  level: "operation",
  name: "64³",
  precision: "float32",
  cost: { operations: 2 * 64 ** 3, bytes: 3 * 64 * 64 * 4 },
  tolerance: 1e-5,
  outcomes: {},
  ...more,
});

const facts = (allocatorPeakBytes: number) => ({ allocatorPeakBytes, activationBytes: 100 });
const scaled = (value: number, milliseconds: number): Row =>
  row({
    workload: "scaling-width",
    level: "scaling",
    name: `width ${value}`,
    point: { axis: "width", value, parameters: value ** 2 },
    outcomes: {
      "halfstep-webgpu": measured(milliseconds, { facts: facts(1000 * value) }),
    },
  });

const report: Report = {
  schema: 2,
  date: "2026-11-21T12:00:00.000Z",
  mode: "quick",
  rounds: 5,
  processes: 2,
  wallSeconds: 12,
  machine: {
    adapter: "Some <GPU>",
    tier: "native",
    isSoftware: true,
    features: [],
    processor: "CPU",
    cores: 2,
    platform: "linux x64",
    node: "20.20.2",
    load: [0.5, 2],
  },
  lanes: [
    { name: "halfstep-webgpu", title: "Halfstep", version: "this repository" },
    { name: "jax-webgpu", title: "jax-js webgpu", version: "0.1.25" },
    { name: "tfjs-wasm", title: "tfjs wasm", missing: "npm ci failed" },
  ],
  limits: { gemm: { isCpuTime: true, copyBytesPerSecond: 2e9, operationsPerSecond: 5e10 } },
  rows: [
    row({
      outcomes: {
        "halfstep-webgpu": measured(2, { facts: facts(1000), cpuMilliseconds: spreadOf([3]) }),
        "jax-webgpu": measured(8, { ratio: 4, cpuMilliseconds: spreadOf([9]) }),
      },
    }),
    row({
      precision: "float16",
      outcomes: {
        "halfstep-webgpu": measured(1, { facts: facts(500), cpuMilliseconds: spreadOf([2]) }),
        "jax-webgpu": measured(0.5, { ratio: 0.5 }),
      },
    }),
    row({
      workload: "mlp",
      level: "training",
      name: "small",
      items: { count: 128, unit: "images" },
      outcomes: {
        "halfstep-webgpu": measured(10, { itemsPerSecond: 12_800 }),
        "jax-webgpu": { status: "wrong", difference: 0.25 },
      },
    }),
    scaled(64, 1),
    scaled(256, 16),
  ],
};

const tableNamed = (title: string) => {
  const found = tablesOf(report).tables.find((table) => table.title === title);
  if (!found) throw new Error(`there is no table ${title}`);
  return found.rows.map((cells) => cells.map(({ text }) => text));
};

test("peers are multiples of our time, and one that is faster stands out", () => {
  expect(tableNamed("Operations")).toEqual([
    ["gemm 64³", "float32", "2 ms", "262 MFLOP/s", "50 %", "4×"],
    ["gemm 64³", "float16", "1 ms", "524 MFLOP/s", "50 %", "0.5×"],
  ]);
  expect(markdownOf(tablesOf(report))).toContain("| 50 % | **0.5×** |");
  expect(htmlOf(tablesOf(report))).toContain('<td class="loss">0.5×</td>');
});

test("the report says how matrices are multiplied, and warns of a GPU without its matrix hardware", () => {
  const products = {
    float16: "blocks of 64×64×16 in workgroup memory",
    float32: "blocks of 32×32×8 in workgroup memory",
    warning: 'float16 products use no hardware matrices: the device has no "shader-f16"',
  };
  expect(tablesOf(report).paragraphs.join()).not.toContain("Products");
  const { paragraphs } = tablesOf({ ...report, machine: { ...report.machine, products } });
  expect(paragraphs).toContain(
    "Products of float16: blocks of 64×64×16 in workgroup memory. Products of float32: blocks of 32×32×8 in workgroup memory.",
  );
  expect(paragraphs).toContain(`Warning: ${products.warning}.`);
});

test("CPU time is compared on software adapters alone", () => {
  expect(tableNamed("CPU time on a software adapter")).toEqual([
    ["gemm 64³", "float32", "3 ms", "3×"],
    ["gemm 64³", "float16", "2 ms", "–"],
  ]);
  const hardware = { ...report, machine: { ...report.machine, isSoftware: false } };
  expect(tablesOf(hardware).tables.map(({ title }) => title)).not.toContain(
    "CPU time on a software adapter",
  );
});

test("half precision is compared with our own float32", () => {
  expect(tableNamed("Half precision against float32")).toEqual([
    ["gemm 64³", "float16", "2×", "1.5×", "50 %", "100 %", "–"],
  ]);
});

test("what a step costs is told for training alone", () => {
  expect(tableNamed("What a step costs")).toEqual([
    [
      ...["mlp small", "float32", "Halfstep"],
      ...["1", "7", "0", "0", "0", "0", "0"],
      ...["2 MiB", "50 µs", "10 ms"],
    ],
  ]);
  expect(tableNamed("Training steps")[0]?.slice(0, 4)).toEqual([
    "mlp small",
    "float32",
    "10 ms",
    "12.8 kimages/s",
  ]);
});

test("figures whose processes are far apart are marked, and each process is told", () => {
  const [first] = report.rows as [Row];
  const apart = (times: readonly number[], more: Partial<Measured> = {}): Measured =>
    measured(times[0] as number, {
      processes: times.map((milliseconds, i) => ({
        ...{ process: i + 1, rounds: 2, milliseconds, cpuMilliseconds: 3, ratio: 4 / milliseconds },
        ...(i === 1 && { counted: { submits: 2 } }),
      })),
      cpuMilliseconds: spreadOf([3]),
      ...more,
    });
  const half: Row = { ...first, precision: "float16", outcomes: {} };
  const rows = [
    { ...first, outcomes: { "halfstep-webgpu": apart([2, 4]), "jax-webgpu": apart([2, 2.4]) } },
    { ...half, outcomes: { "halfstep-webgpu": apart([2, 2.4]), "jax-webgpu": apart([2, 4]) } },
  ];
  const { tables, paragraphs } = tablesOf({ ...report, rows });
  const table = (title: string) => {
    const found = tables.find((candidate) => candidate.title === title);
    if (!found) throw new Error(`there is no table ${title}`);
    return { ...found, rows: found.rows.map((cells) => cells.map(({ text }) => text)) };
  };
  expect(paragraphs[0]).toContain("5 interleaved rounds in 2 fresh processes of each lane, load");
  const operations = table("Operations");
  expect(operations.note).toContain("†: its processes are more than 25 % apart");
  expect(operations.rows.map((cells) => [cells[2], cells[5]])).toEqual([
    ["2 ms †", "1×"],
    ["2 ms", "1× †"],
  ]);
  expect(table("Half precision against float32").rows[0]?.slice(2, 4)).toEqual(["1× †", "1×"]);
  expect(table("CPU time on a software adapter").note).not.toContain("†");
  expect(table("Where processes differ").rows).toEqual([
    ["gemm 64³", "float32", "Halfstep", "time", "2 ms", "4 ms", "2×"],
    ["gemm 64³", "float32", "Halfstep", "submits", "1", "2", "–"],
    ["gemm 64³", "float32", "jax-js webgpu", "submits", "1", "2", "–"],
    ["gemm 64³", "float16", "Halfstep", "speed against float32", "1×", "1.7×", "1.7×"],
    ["gemm 64³", "float16", "Halfstep", "submits", "1", "2", "–"],
    ["gemm 64³", "float16", "jax-js webgpu", "times ours", "2×", "1×", "2×"],
    ["gemm 64³", "float16", "jax-js webgpu", "submits", "1", "2", "–"],
  ]);
});

test("lanes that were prepared in one process only are counted", () => {
  const [first] = report.rows as [Row];
  const once = measured(2, { processes: [{ process: 1, rounds: 3, milliseconds: 2 }] });
  const rows = [{ ...first, outcomes: { ...first.outcomes, "jax-webgpu": once } }];
  const text = markdownOf(tablesOf({ ...report, rows }));
  expect(text).toContain(
    "5 interleaved rounds in 2 fresh processes of each lane (1 result of the first alone: slow to prepare), load",
  );
  expect(markdownOf(tablesOf({ ...report, rows, processes: 1 }))).toContain(
    "5 interleaved rounds in one process of each lane, load",
  );
});

test("scaling is a slope", () => {
  expect(tableNamed("Scaling")).toEqual([
    ["width", "float32", "64, 256", "1 ms, 16 ms", "2.00", "2.00", "1.00", "1.00"],
  ]);
});

test("what failed its check is shown and never timed", () => {
  expect(tableNamed("Checks before timing").at(-1)).toEqual([
    ...["mlp small", "float32", "1e-5", "1.0e-6", "wrong: 2.5e-1", "–"],
  ]);
});

test("the page says where and how it was measured, and what is missing", () => {
  const text = markdownOf(tablesOf(report));
  expect(text).toContain("load average 0.5 before and 2.0 after");
  expect(text).toContain(
    "copy 2 GB/s (read and written), float32 multiply-add 50 GFLOP/s, both a core of CPU",
  );
  expect(text).toContain("Missing: tfjs wasm: npm ci failed.");
  expect(text).toContain("peers on WebGPU: 2 comparisons, 1 lost, geometric mean 1.4×");
  expect(htmlOf(tablesOf(report))).toContain("Some &lt;GPU&gt;");
});

test("numbers have three digits and a unit", () => {
  expect([0.0123, 0.5, 12.345, 1234].map(formatMilliseconds)).toEqual([
    "12.3 µs",
    "0.5 ms",
    "12.3 ms",
    "1.23 s",
  ]);
  expect([950, 12_345, 4.82e10].map(formatRate)).toEqual(["950 ", "12.3 k", "48.2 G"]);
  expect([0.025, 0.999, 2.345, 12.34].map(formatTimes)).toEqual(["0.025×", "1×", "2.3×", "12.3×"]);
  expect([0.0123, 0.5].map(formatPercent)).toEqual(["1.2 %", "50 %"]);
  expect([2048, 5 * 2 ** 20].map(formatBytes)).toEqual(["2 KiB", "5 MiB"]);
});
