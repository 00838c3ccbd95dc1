/**
 * Measures the best blocks of matrix products on the present adapter, and writes them into src/matmul/measured-blocks.ts for
 * devices like it: `npm run tune`. The blocks of all others stay.
 */

import { resolve } from "node:path";
import type { Binding, DType, Hardware, LaunchTarget } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { writeWhole } from "../../../scripts/whole-file.mjs";
import { type BlockSize, blockSize } from "../src/matmul/block-size.js";
import {
  type Blocks,
  type MatrixBlock,
  type SharedBlock,
  tableName,
} from "../src/matmul/block-table.js";
import { chooseEngine } from "../src/matmul/engine.js";
import { measuredBlocks, measuredOn } from "../src/matmul/measured-blocks.js";
import { type MatmulAttributes, matmul } from "../src/matmul.js";
import { type Launches, measure } from "./measure.js";
import { hardwareWithBlocks } from "./pretended-blocks.js";

const [surplus] = process.argv.slice(2);
if (surplus !== undefined) refuse(`${surplus}: npm run tune takes no arguments`, 2);

const device = await requestDevice().catch((error: Error) => refuse(error.message, 1));
const { hardware, adapter, tier, subgroupSize } = device.capabilities;
const isSoftware = hardware.class === "software";
const unit = isSoftware ? "GFLOP/s a core" : "GFLOP/s";
const name = adapter.description || adapter.device || adapter.vendor;
console.log(`${name}: ${tableName(hardware)}`);

const shared = (
  rows: number,
  columns: number,
  depth: number,
  perInvocation: 4 | 8,
): SharedBlock => ({ rows, columns, depth, perInvocation });
const matrix = (
  [rows, columns, depth]: readonly [number, number, number],
  [subgroupRows, subgroupColumns]: readonly [number, number],
  stages: 1 | 2,
): MatrixBlock => ({ rows, columns, depth, subgroupRows, subgroupColumns, stages });

const candidates: Readonly<
  Record<BlockSize, { shared: readonly SharedBlock[]; matrix: readonly MatrixBlock[] }>
> = {
  large: {
    shared: [shared(128, 128, 16, 8), shared(128, 128, 8, 8), shared(128, 64, 16, 8)],
    matrix: [
      matrix([128, 128, 32], [64, 64], 2),
      matrix([128, 128, 64], [64, 64], 1),
      matrix([128, 128, 32], [64, 64], 1),
      matrix([128, 128, 32], [64, 32], 2),
      matrix([128, 128, 32], [64, 32], 1),
      matrix([256, 128, 16], [64, 64], 2),
      matrix([256, 128, 32], [64, 64], 1),
      matrix([128, 256, 32], [64, 64], 1),
      matrix([128, 128, 32], [32, 32], 1),
      matrix([128, 128, 16], [64, 64], 1),
      matrix([128, 64, 32], [32, 32], 2),
      matrix([128, 64, 32], [32, 32], 1),
    ],
  },
  medium: {
    shared: [shared(64, 64, 16, 4), shared(64, 64, 16, 8), shared(32, 32, 32, 4)],
    matrix: [
      matrix([64, 64, 32], [32, 32], 2),
      matrix([64, 64, 64], [32, 32], 1),
      matrix([64, 64, 32], [32, 32], 1),
      matrix([64, 64, 32], [32, 16], 2),
      matrix([64, 64, 32], [32, 16], 1),
      matrix([64, 128, 32], [32, 64], 2),
      matrix([32, 64, 32], [32, 32], 2),
      matrix([64, 64, 16], [32, 32], 1),
    ],
  },
};

/** Two of each size, or smaller ones where the CPU computes. */
const shapes: readonly MatmulAttributes[] = isSoftware
  ? [
      { m: 1280, n: 1280, k: 64 },
      { m: 256, n: 256, k: 256, transB: true },
    ]
  : [
      { m: 4096, n: 4096, k: 4096 },
      { m: 8192, n: 3072, k: 768, transB: true },
      { m: 512, n: 512, k: 2048, transB: true },
      { m: 768, n: 768, k: 1024, transA: true },
    ];

function refuse(message: string, code: number): never {
  console.error(message);
  process.exit(code);
}

function pretend(target: LaunchTarget<GPUBuffer>, other: Hardware): LaunchTarget<GPUBuffer> {
  return {
    allocate: (bytes) => target.allocate(bytes),
    launch: (launch) =>
      target.launch({
        ...launch,
        kernel: {
          ...launch.kernel,
          variant: `${launch.kernel.variant} ${other.class}`,
          program: (context) => launch.kernel.program({ ...context, hardware: other }),
        },
      }),
  };
}

/** The table before candidates are added to it. */
const committed = { ...measuredBlocks };

/**
 * The fastest of the candidates by the sum of the logarithms of their times; undefined where the existing variant `without` them is
 * faster.
 */
async function fastest<Block extends SharedBlock | MatrixBlock>(
  size: BlockSize,
  kind: "shared" | "matrix",
  blocks: readonly Block[],
  storages: readonly DType[],
  without: Blocks[BlockSize] = {},
): Promise<Block | undefined> {
  const hardwareWith = (label: string, ofSize: Blocks[BlockSize]): Hardware =>
    hardwareWithBlocks(hardware, label, { large: {}, medium: {}, [size]: ofSize });
  const none = `no ${kind}`;
  const fitting = new Map<string, { readonly block?: Block; readonly hardware: Hardware }>([
    [none, { hardware: hardwareWith(none, without) }],
  ]);
  for (const block of blocks) {
    const label = `${kind} ${Object.values(block).join("×")}`;
    const other = hardwareWith(label, { ...without, [kind]: [block] });
    const bindings = Array(2).fill({ dtype: "float16" });
    const context = { tier, subgroupSize, hardware: other, bindings };
    // A block that does not fit would be timed without being used.
    if (chooseEngine(size, context).kind === kind) fitting.set(label, { block, hardware: other });
    else console.log(`${size} ${label}: does not fit`);
  }
  const names = [...fitting.keys()];
  const scores = new Map(names.map((label) => [label, 0]));
  for (const shape of shapes.filter(({ m, n, k, batch = 1 }) => blockSize(m, n, k, batch) === size))
    for (const dtype of storages) {
      const { m, n, k } = shape;
      const bind = (length: number): Binding<GPUBuffer> => ({
        buffer: device.allocate(length * 4),
        offset: 0,
        length,
        dtype,
      });
      const operands = { a: bind(m * k), b: bind(k * n), out: bind(m * n) };
      const variants: Record<string, Launches> = {};
      for (const [label, { hardware: other }] of fitting)
        variants[label] = (target) => matmul(pretend(target, other), operands, shape);
      const times = await measure(device, variants, 5);
      for (const label of names) {
        const { best = 0 } = times[label] ?? {};
        scores.set(label, (scores.get(label) ?? 0) + Math.log(best));
        const rate = ((2 * m * n * k) / best / 1e6).toFixed(1);
        console.log(`${size} ${m}×${n}×${k} ${dtype} ${label}: ${rate} ${unit}`);
      }
      for (const { buffer } of Object.values(operands)) device.release(buffer);
    }
  const [first] = [...scores].sort(([, x], [, y]) => x - y);
  return fitting.get(first?.[0] ?? none)?.block;
}

const all: readonly DType[] = ["float32", "float16"];
const { subgroupMatrices } = hardware;
// Subgroup matrices without float32 components multiply only halves.
const multiplied = subgroupMatrices.some(({ component }) => component === "f32")
  ? all
  : all.slice(1);

const chosen: Record<BlockSize, Blocks[BlockSize]> = { large: {}, medium: {} };
for (const size of ["large", "medium"] as const) {
  const best = await fastest(size, "shared", candidates[size].shared, all);
  const without = best ? { shared: [best] } : {};
  const inHardware =
    subgroupMatrices.length > 0
      ? await fastest(size, "matrix", candidates[size].matrix, multiplied, without)
      : undefined;
  chosen[size] = { ...without, ...(inHardware && { matrix: [inHardware] }) };
}
device.destroy();

const table = { ...committed, [tableName(hardware)]: chosen };
const adapters = { ...measuredOn, [tableName(hardware)]: name };
const file = "src/matmul/measured-blocks.ts";
writeWhole(
  file,
  `import type { Blocks } from "./block-table.js";

// Written by \`npm run tune\`.
export const measuredBlocks: Readonly<Record<string, Blocks>> = ${JSON.stringify(table, null, 2)};

/** The adapter that each was measured on. */
export const measuredOn: Readonly<Record<string, string>> = ${JSON.stringify(adapters, null, 2)};
`,
);
console.log(`${resolve(file)} is written: format it with biome, and commit it in packages/kernels`);
