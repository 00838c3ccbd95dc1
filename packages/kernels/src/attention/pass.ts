import type { Binding, Kernel, KernelBinding, KernelView, Launch } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import type { AttentionOperands } from "./operands.js";
import {
  type AttentionAttributes,
  type AttentionParts,
  attentionParts,
  byParts,
  operationsOf,
  scalarsOf,
  scalarValues,
  variantOf,
} from "./shape.js";
import {
  type AttentionTile,
  accumulate,
  attentionTile,
  each,
  type ResultTile,
  resultTile,
  rowPositions,
  rowQuads,
  scoreTile,
  storeResult,
  tileMain,
  tileWorkgroups,
} from "./tile.js";
import {
  maskBinding,
  type TileRows,
  tileVisibility,
  type Visibility,
  visibilityFunctions,
  visibilityOf,
} from "./visibility.js";

/**
 * A pass over all scores: a tile has some rows of one side, queries or keys, and walks over the other, four columns a lane at a
 * time. In each step it has the scores of its rows as `score0 …`, in a backward pass also outGradient valueᵀ as `change0 …`; the
 * pass makes weights of them, with which rows of the walked side are added to its results.
 */
interface AttentionPass {
  readonly name: string;
  readonly rows: TileRows;
  /** Whether it reads outGradient and statistics. */
  readonly isBackward: boolean;
  /** What else it stores, besides its results. */
  readonly stores?: readonly KernelBinding[];
  readonly results: readonly ResultTile[];
  statements(tile: AttentionTile): PassStatements;
  reference(operands: PassViews): void;
}

/** The WGSL in which passes differ. */
interface PassStatements {
  readonly functions?: string;
  /** Registers of the rows, which live as long as the tile. */
  readonly registers?: string;
  /** What a lane loads of its four columns in a step. */
  readonly columns?: string;
  /** Turns the scores of row r into weights. */
  weigh(r: number): string;
  /** Between the walk and the stores of the results. */
  readonly beforeStores?: string;
  readonly afterStores?: string;
}

/** What a reference computes from. */
export interface PassViews extends Visibility, PassNumbers {
  readonly query: KernelView;
  readonly key: KernelView;
  readonly value: KernelView;
  /** The bindings behind the mask. */
  readonly others: readonly KernelView[];
}

type PassNumbers = Readonly<
  Record<"entries" | "queries" | "keys" | "size" | "width" | "scale", number>
>;

/** The kernels of a pass. */
export const definePass = (
  pass: (parts: AttentionParts) => AttentionPass,
): ((parts: AttentionParts) => Kernel) => byParts((parts) => passKernel(parts, pass(parts)));

/** A launch of a pass, whose operands besides query, key, value and mask are `others`. */
export const launchOf = <B>(
  kernel: (parts: AttentionParts) => Kernel,
  { query, key, value, mask }: AttentionOperands<B>,
  others: readonly Binding<B>[],
  attributes: AttentionAttributes,
): Launch<B> => ({
  kernel: kernel(attentionParts(attributes)),
  bindings: [query, key, value, ...(mask ? [mask] : []), ...others],
  scalars: scalarValues(attributes),
});

function passKernel(parts: AttentionParts, pass: AttentionPass): Kernel {
  const { name, rows, isBackward, stores = [], results } = pass;
  // Scores, and changes.
  const products = isBackward ? 2 : 1;
  const quads = results.map((result) => result.quads);
  const resultsOf = (size: ResultTile["size"]): number =>
    results.filter((result) => result.size === size).length;
  return defineKernel({
    name,
    variant: variantOf(parts),
    bindings: [
      { name: "query", access: "read" },
      { name: "key", access: "read" },
      { name: "value", access: "read" },
      ...maskBinding(parts),
      ...(isBackward ? backwardBindings : []),
      ...results.map(({ out }) => ({ name: out, access: "write" as const })),
      ...stores,
    ],
    scalars: scalarsOf(parts),
    subgroups: ({ subgroupSize }) => subgroupSize > 0,
    body: (context) => passProgram(parts, pass, attentionTile(context, products, quads)),
    workgroups: ({ entries = 0, [rows]: length = 0 }, _, context) =>
      tileWorkgroups(attentionTile(context, products, quads), entries, length),
    operations: operationsOf(1 + resultsOf("s.size"), products - 1 + resultsOf("s.width")),
    reference(views, scalars) {
      const [query, key, value] = views as [KernelView, KernelView, KernelView];
      const [mask, others] = parts.mask ? [views[3], views.slice(4)] : [undefined, views.slice(3)];
      const numbers = scalars as unknown as PassNumbers;
      const visibility = visibilityOf(parts, mask, scalars);
      pass.reference({ query, key, value, others, ...numbers, ...visibility });
    },
  });
}

const backwardBindings: readonly KernelBinding[] = [
  { name: "outGradient", access: "read" },
  { name: "statistics", access: "read", unit: 2, dtypes: ["float32"] },
];

/** The two sides of a tile, in WGSL. */
interface Sides {
  /** Where the rows of the tile's entry start among those of all entries, and how many there are. */
  readonly rows: { readonly start: string; readonly length: string };
  /** Where the columns of its entry start, and the last of them that anything may look at. */
  readonly columns: { readonly start: string; readonly last: string };
  /** Declares `end` of the walk, of which `first` is the first column. */
  bounds(rows: number): string;
  readonly first: string;
  /** Whose products scores and changes are: the operand along the rows, and that along the columns. */
  readonly score: readonly [rows: string, columns: string];
  readonly change: readonly [rows: string, columns: string];
}

const sidesOf: Readonly<Record<TileRows, Sides>> = {
  queries: {
    rows: { start: "query_start", length: "s.queries" },
    columns: { start: "key_start", last: "seen - 1u" },
    bounds: (rows) => `  let end = select(seen, min(seen, row + ${rows}u), s.causal != 0u);\n`,
    first: "0u",
    score: ["query", "key"],
    change: ["outGradient", "value"],
  },
  keys: {
    rows: { start: "key_start", length: "s.keys" },
    columns: { start: "query_start", last: "s.queries - 1u" },
    bounds: () => `  let begin = select(0u, row, s.causal != 0u);
  let end = select(0u, s.queries, row < seen);
`,
    first: "begin",
    score: ["key", "query"],
    change: ["value", "outGradient"],
  },
};

function passProgram(
  parts: AttentionParts,
  { rows: side, isBackward, results, statements }: AttentionPass,
  tile: AttentionTile,
): string {
  const { isSizeAligned, isWidthAligned } = parts;
  const { rows, columns, bounds, first, score, change } = sidesOf[side];
  const own = statements(tile);
  const functions = [
    rowQuads("query", "s.size", isSizeAligned),
    rowQuads("key", "s.size", isSizeAligned),
    rowQuads("value", "s.width", isWidthAligned),
    isBackward ? rowQuads("outGradient", "s.width", isWidthAligned) : "",
    visibilityFunctions(parts),
    own.functions,
  ];
  const registers = [
    bounds(tile.rows),
    rowPositions(tile, rows.start, rows.length),
    own.registers,
    ...results.map((result) => resultTile(tile, result)),
  ];
  const { start, last } = columns;
  const step = [
    each(4, (u) => `    let column${u} = ${start} + min(column + ${u}u, ${last});\n`),
    own.columns,
    scoreTile(tile, "score", ...score, "s.size"),
    isBackward ? scoreTile(tile, "change", ...change, "s.width") : "",
    tileVisibility(parts, side, tile.rows),
    each(tile.rows, (r) => `    {\n${own.weigh(r)}    }\n`),
    ...results.map((result) => accumulate(tile, result, columns)),
  ];
  const stores = [
    own.beforeStores,
    ...results.map((result) => storeResult(tile, result, rows)),
    own.afterStores,
  ];
  return `${functions.join("")}
${tileMain(tile, rows.length)}
  let query_start = entry * s.queries;
  let key_start = entry * s.keys;
  let seen = seen_keys(entry);
${registers.join("")}
  for (var first_column = ${first}; first_column < end; first_column += ${4 * tile.lanes}u) {
    let column = first_column + lane * 4u;
${step.join("")}  }
${stores.join("")}}
`;
}
