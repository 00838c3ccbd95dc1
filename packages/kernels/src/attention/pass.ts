import type { Binding, KernelBinding, KernelView, Launch, ProgramContext } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import { matrixDirectives } from "../matmul/matrix-block.js";
import {
  type HeadKernel,
  type HeadOperand,
  headScalars,
  type StoredResults,
  setDense,
  tokenPlaces,
} from "./heads.js";
import { type AttentionBlock, attentionBlock, blockWorkgroups } from "./matrix-block.js";
import { matrixProgram } from "./matrix-program.js";
import { blockNeeds } from "./matrix-staging.js";
import type { AttentionOperands } from "./operands.js";
import type { PassCode } from "./pass-code.js";
import { rowsProgram } from "./rows-program.js";
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
import { attentionTile, type ResultTile, tileWorkgroups } from "./tile.js";
import { maskBinding, type Visibility, visibilityOf } from "./visibility.js";

/** A pass: its code, and the same on the CPU. */
interface AttentionPass extends PassCode {
  readonly name: string;
  /** Further bindings that it stores, besides its results. */
  readonly stores?: readonly KernelBinding[];
  reference(operands: PassViews): void;
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

/** An operand on the CPU: `at` returns the start of a token for an entry of queries. */
export interface HeadView {
  readonly view: KernelView;
  at(entry: number, token: number): number;
}

type PassNumbers = Readonly<
  Record<"entries" | "queries" | "keys" | "size" | "width" | "scale", number>
> & {
  readonly group?: number;
};

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
    const isShared = parts.isGrouped && along.tokens === "keys";
    return {
      name,
      ...along,
      isShared,
      unit,
      binding: bindings.findIndex((each) => each.name === binding),
    };
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
  const needs = blockNeeds(parts, pass, operands);
  const blockOf = (context: ProgramContext): AttentionBlock | undefined =>
    attentionBlock(needs, context);
  const kernel = defineKernel({
    name,
    variant: variantOf(parts),
    bindings,
    scalars: [...scalarsOf(parts), ...headScalars(operands)],
    subgroups: (context) => context.subgroupSize > 0 || blockOf(context) !== undefined,
    directives: (context) => (blockOf(context) ? matrixDirectives : ""),
    body(context) {
      const block = blockOf(context);
      return block
        ? matrixProgram(parts, pass, operands, block, context.bindings)
        : rowsProgram(parts, pass, operands, attentionTile(context, products, quads));
    },
    workgroups({ entries = 0, group = 1, [rows]: length = 0 }, _, context) {
      const block = blockOf(context);
      const count = rows === "keys" ? entries / group : entries;
      return block
        ? blockWorkgroups(block, count, length)
        : tileWorkgroups(attentionTile(context, products, quads), count, length);
    },
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
