import type { Binding, KernelBinding, KernelView, Launch } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import {
  type HeadKernel,
  type HeadOperand,
  headBases,
  headScalars,
  type StoredResults,
  setDense,
  tokenPlaces,
} from "./heads.js";
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
 * A pass over all scores: a tile has some rows of one side, queries or keys, and iterates over the other, four columns a lane at
 * a time. In each step it has the scores of its rows as `score0 …`, in a backward pass also outGradient valueᵀ as `change0 …`.
 * The pass turns them into weights for the rows of the other side, which it adds to its results.
 */
interface AttentionPass {
  readonly name: string;
  readonly rows: TileRows;
  /** Whether it reads outGradient and statistics. */
  readonly isBackward: boolean;
  /** Further bindings that it stores, besides its results. */
  readonly stores?: readonly KernelBinding[];
  readonly results: readonly ResultTile[];
  statements(tile: AttentionTile): PassStatements;
  reference(operands: PassViews): void;
}

/** The parts of the WGSL that differ between passes. */
interface PassStatements {
  readonly functions?: string;
  /** Registers of the rows, declared for the whole tile. */
  readonly registers?: string;
  /** The loads of a lane's four columns in a step. */
  readonly columns?: string;
  /** Turns the scores of row r into weights. */
  weigh(r: number): string;
  /** Statements between the loop and the stores of the results. */
  readonly beforeStores?: string;
  readonly afterStores?: string;
}

/** The inputs of a reference. */
export interface PassViews extends Visibility, PassNumbers {
  readonly query: HeadView;
  readonly key: HeadView;
  readonly value: HeadView;
  /** In a backward pass. */
  readonly outGradient: HeadView;
  readonly statistics: KernelView;
  readonly results: readonly HeadView[];
  /** Further stored views. */
  readonly stores: readonly KernelView[];
}

/** An operand on the CPU: `at` returns the start of a token of an entry. */
export interface HeadView {
  readonly view: KernelView;
  at(entry: number, token: number): number;
}

type PassNumbers = Readonly<
  Record<"entries" | "queries" | "keys" | "size" | "width" | "scale", number>
>;

/** The kernels of a pass. */
export function definePass(
  pass: (parts: AttentionParts) => AttentionPass,
): (parts: AttentionParts) => HeadKernel {
  const kernelOf = byParts(
    (parts): HeadKernel =>
      passKernel(parts, pass(parts), (results) => kernelOf({ ...parts, results })),
  );
  return kernelOf;
}

/** A launch of a pass, whose operands besides query, key, value and mask are `others`. */
export const launchOf = <B>(
  kernelOf: (parts: AttentionParts) => HeadKernel,
  { query, key, value, mask }: AttentionOperands<B>,
  others: readonly Binding<B>[],
  attributes: AttentionAttributes,
): Launch<B> => {
  const kernel = kernelOf(attentionParts(attributes));
  return {
    kernel,
    bindings: [query, key, value, ...(mask ? [mask] : []), ...others],
    scalars: setDense(kernel.heads.operands, scalarValues(attributes)),
  };
};

/** The bindings of a pass, and the indices of its operands among them. */
function boundOf(
  parts: AttentionParts,
  { rows, isBackward, stores = [], results }: AttentionPass,
): { readonly bindings: readonly KernelBinding[]; readonly operands: readonly HeadOperand[] } {
  const access = parts.results === "whole" ? "write" : "readwrite";
  const stored = parts.results === "joined" ? ["results"] : results.map(({ out }) => out);
  const bindings: readonly KernelBinding[] = [
    { name: "query", access: "read" },
    { name: "key", access: "read" },
    { name: "value", access: "read" },
    ...maskBinding(parts),
    ...(isBackward ? backwardBindings : []),
    ...stored.map((name) => ({ name, access }) as const),
    ...stores,
  ];
  const operand = (
    name: string,
    binding: string,
    along: Pick<HeadOperand, "tokens" | "size" | "isResult">,
  ): HeadOperand => {
    const isAligned = along.size === "size" ? parts.isSizeAligned : parts.isWidthAligned;
    const unit = isAligned || along.isResult ? 4 : 1;
    return { name, ...along, unit, binding: bindings.findIndex((each) => each.name === binding) };
  };
  const read = { isResult: false };
  return {
    bindings,
    operands: [
      operand("query", "query", { ...read, tokens: "queries", size: "size" }),
      operand("key", "key", { ...read, tokens: "keys", size: "size" }),
      operand("value", "value", { ...read, tokens: "keys", size: "width" }),
      ...(isBackward
        ? [operand("outGradient", "outGradient", { ...read, tokens: "queries", size: "width" })]
        : []),
      ...results.map(({ out, size }) =>
        operand(out, stored.length < results.length ? "results" : out, {
          isResult: true,
          tokens: rows,
          size: size === "s.size" ? "size" : "width",
        }),
      ),
    ],
  };
}

function passKernel(
  parts: AttentionParts,
  pass: AttentionPass,
  storing: (results: StoredResults) => HeadKernel,
): HeadKernel {
  const { name, rows, results, isBackward } = pass;
  const { bindings, operands } = boundOf(parts, pass);
  // Products of scores, and of changes.
  const products = isBackward ? 2 : 1;
  const quads = results.map((result) => result.quads);
  const resultsOf = (size: ResultTile["size"]): number =>
    results.filter((result) => result.size === size).length;
  const kernel = defineKernel({
    name,
    variant: variantOf(parts),
    bindings,
    scalars: [...scalarsOf(parts), ...headScalars(operands)],
    subgroups: ({ subgroupSize }) => subgroupSize > 0,
    body: (context) => passProgram(parts, pass, operands, attentionTile(context, products, quads)),
    workgroups: ({ entries = 0, [rows]: length = 0 }, _, context) =>
      tileWorkgroups(attentionTile(context, products, quads), entries, length),
    operations: operationsOf(1 + resultsOf("s.size"), products - 1 + resultsOf("s.width")),
    reference(views, scalars) {
      const viewOf = (binding: string): KernelView =>
        views[bindings.findIndex((each) => each.name === binding)] as KernelView;
      const heads = new Map(
        operands.map((operand): [string, HeadView] => [
          operand.name,
          {
            view: views[operand.binding] as KernelView,
            at: tokenPlaces(operand, scalars),
          },
        ]),
      );
      const headView = (operand: string): HeadView => heads.get(operand) as HeadView;
      pass.reference({
        query: headView("query"),
        key: headView("key"),
        value: headView("value"),
        outGradient: headView("outGradient"),
        statistics: viewOf("statistics"),
        results: results.map(({ out }) => headView(out)),
        stores: (pass.stores ?? []).map((store) => viewOf(store.name)),
        ...(scalars as unknown as PassNumbers),
        ...visibilityOf(parts, viewOf("mask"), scalars),
      });
    },
  });
  return { ...kernel, heads: { operands, results: parts.results, storing } };
}

const backwardBindings: readonly KernelBinding[] = [
  { name: "outGradient", access: "read" },
  { name: "statistics", access: "read", dtypes: ["float32"] },
];

/** The two sides of a tile, in WGSL. */
interface Sides {
  /** The number of rows of the tile's entry. */
  readonly rows: string;
  /** The last column of its entry that any row reads. */
  readonly lastColumn: string;
  /** Declares `first` and `end`, the range of columns of the loop. */
  bounds(rows: number): string;
  readonly first: string;
  /**
   * The operands whose products are the scores (and below, the changes): the one along the rows, and the one along the columns.
   */
  readonly score: readonly [rows: string, columns: string];
  readonly change: readonly [rows: string, columns: string];
}

const sidesOf: Readonly<Record<TileRows, Sides>> = {
  queries: {
    rows: "s.queries",
    lastColumn: "seen - 1u",
    bounds: (rows) => `  let end = select(seen, min(seen, row + ${rows}u), s.causal != 0u);\n`,
    first: "0u",
    score: ["query", "key"],
    change: ["outGradient", "value"],
  },
  keys: {
    rows: "s.keys",
    lastColumn: "s.queries - 1u",
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
  operands: readonly HeadOperand[],
  tile: AttentionTile,
): string {
  const { isSizeAligned, isWidthAligned } = parts;
  const { rows, lastColumn, bounds, first, score, change } = sidesOf[side];
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
    rowPositions(tile, score[0], rows),
    isBackward ? rowPositions(tile, change[0], rows) : "",
    own.registers,
    ...results.map((result) => resultTile(tile, result)),
  ];
  const step = [
    each(4, (u) => `    let column${u} = min(column + ${u}u, ${lastColumn});\n`),
    own.columns,
    scoreTile(tile, "score", ...score, "s.size"),
    isBackward ? scoreTile(tile, "change", ...change, "s.width") : "",
    tileVisibility(parts, side, tile.rows),
    each(tile.rows, (r) => `    {\n${own.weigh(r)}    }\n`),
    ...results.map((result) => accumulate(tile, result, lastColumn)),
  ];
  const stores = [
    own.beforeStores,
    ...results.map((result) =>
      storeResult(tile, result, parts.results === "joined" ? "results" : result.out, rows),
    ),
    own.afterStores,
  ];
  return `${functions.join("")}
${tileMain(tile, rows)}
${headBases(operands)}  let query_start = entry * s.queries;
  let seen = seen_keys(entry);
${registers.join("")}
  for (var first_column = ${first}; first_column < end; first_column += ${4 * tile.lanes}u) {
    let column = first_column + lane * 4u;
${step.join("")}  }
${stores.join("")}}
`;
}
