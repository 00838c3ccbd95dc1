import type { Hardware } from "@halfstep/device";
import { type BlockSize, divisionForGpus } from "./block-size.js";
import { measuredBlocks } from "./measured-blocks.js";

/** A workgroup's part of the result, and its depth along k in a step. */
interface Block {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
}

export interface SharedBlock extends Block {
  /** Rows, and columns, that one invocation computes. */
  readonly perInvocation: 4 | 8;
}

export interface MatrixBlock extends Block {
  /** Rows and columns that one subgroup computes. */
  readonly subgroupRows: number;
  readonly subgroupColumns: number;
  /** Steps whose factors lie in workgroup memory together. With two, a step has one barrier, and twice the memory. */
  readonly stages: 1 | 2;
}

/** Blocks of each size, the best first: a device takes the first that fits it. Without a list, that engine is not used. */
export type Blocks = Readonly<
  Record<
    BlockSize,
    { readonly shared?: readonly SharedBlock[]; readonly matrix?: readonly MatrixBlock[] }
  >
>;

/** Blocks [rows, columns, depth, stages], each divided among subgroups in every way of `parts` [rows, columns]. */
const matrixBlocks = (
  sizes: readonly (readonly [number, number, number, 1 | 2])[],
  parts: readonly (readonly [number, number])[],
): readonly MatrixBlock[] =>
  sizes.flatMap(([rows, columns, depth, stages]) =>
    parts.map(([subgroupRows, subgroupColumns]) => ({
      ...{ rows, columns, depth, subgroupRows, subgroupColumns, stages },
    })),
  );

/**
 * Blocks of devices that were not measured. The matrix blocks of float16 take 40, 36, 20, 16.5 and 15 KiB if large, and 20, 18, 10
 * and 8.5 KiB if medium. Large parts of subgroups come first: each element that a subgroup loads is then used most often.
 */
const defaultBlocks: Blocks = {
  large: {
    shared: [{ rows: 128, columns: 128, depth: 16, perInvocation: 8 }],
    matrix: matrixBlocks(
      [
        [128, 128, 32, 2],
        [128, 128, 64, 1],
        [128, 128, 32, 1],
        [128, 128, 16, 1],
        [128, 64, 32, 1],
      ],
      [
        [64, 64],
        [64, 32],
        [32, 32],
        [32, 16],
      ],
    ),
  },
  medium: {
    shared: [{ rows: 64, columns: 64, depth: 16, perInvocation: 4 }],
    matrix: matrixBlocks(
      [
        [64, 64, 32, 2],
        [64, 64, 64, 1],
        [64, 64, 32, 1],
        [64, 64, 16, 1],
      ],
      [
        [32, 32],
        [32, 16],
      ],
    ),
  },
};

/**
 * The name under which measured blocks are committed. It has all that decides which blocks fit, because the blocks of one device of a
 * vendor are not the best of another. Adapters that are CPUs share theirs.
 */
export function tableName(hardware: Hardware): string {
  const { class: deviceClass, workgroupBytes, workgroupInvocations } = hardware;
  if (deviceClass === "software") return deviceClass;
  const matrices = hardware.subgroupMatrices.map(
    ({ m, n, k, component }) => `${m}×${n}×${k} ${component}`,
  );
  return [
    deviceClass,
    `${workgroupBytes} bytes`,
    `${workgroupInvocations} invocations`,
    ...(matrices.length > 0 ? [`${hardware.matrixSubgroupSize} lanes`, ...matrices] : []),
  ].join(", ");
}

/** The committed blocks for a device: never measured while training, so that sums repeat. */
export const blocks = (hardware: Hardware): Blocks =>
  measuredBlocks[tableName(hardware)] ?? defaultBlocks;

/**
 * The committed numbers that decide how a device adds up its products, as text: checkpoints store it, because a run that continues with
 * others does not repeat the same bits.
 */
export const kernelTable = (hardware: Hardware): string =>
  JSON.stringify(
    hardware.class === "software"
      ? blocks(hardware)
      : { blocks: blocks(hardware), division: divisionForGpus },
  );
