import type { KernelScalar } from "@halfstep/device";
import { requireOneOf } from "../attributes.js";
import { thresholdOf } from "../random.js";
import { type RandomSource, sourceScalars, sourceWords } from "../random-bits.js";
import type { StoredResults } from "./heads.js";

/** Attention of queries [entries, queries, size] to keys [entries / group, keys, size] and values [entries / group, keys, width]. */
export interface AttentionShape {
  /** Sequences of queries side by side: batch · heads. */
  readonly entries: number;
  /** Heads of queries, one after the other, that share a head of keys and values. Default 1. */
  readonly group?: number | undefined;
  readonly queries: number;
  readonly keys: number;
  /** Elements of a query and of a key. */
  readonly size: number;
  /** Elements of a value. */
  readonly width: number;
}

/**
 * The kind of a mask: numbers `added` to the scaled scores, `flags` that are not 0 for visible keys, or the `lengths` of the
 * sequences of keys before their padding.
 */
export type AttentionMaskKind = "added" | "flags" | "lengths";

/** The layout of a mask: the place of the element for an entry, a query and a key. */
export interface AttentionMask {
  readonly kind: AttentionMaskKind;
  /** Entry e is at e / inner · outerStride + e % inner · innerStride. */
  readonly inner: number;
  readonly outerStride: number;
  readonly innerStride: number;
  readonly queryStride: number;
  readonly keyStride: number;
}

/** Shape and rule of fused attention. */
export interface AttentionAttributes extends AttentionShape {
  /** Factor of the scores. */
  readonly scale: number;
  /** Query i attends to keys 0 … i only. Default false. */
  readonly isCausal?: boolean;
  /** Query i attends to keys i − window … i + window only. Default: no limit. */
  readonly window?: number | undefined;
  /** Required with a binding `mask`. */
  readonly mask?: AttentionMask | undefined;
  /** Probabilities are dropped as {@link dropout} would drop a tensor [entries, queries, keys] of them. */
  readonly dropout?: { readonly p: number; readonly source: RandomSource } | undefined;
}

/** Larger heads would not fit in the registers of an invocation. */
export const maxAttentionSize = 256;

/**
 * The layout of a mask that broadcasts to [...lead, queries, keys]; lengths broadcast to [...lead]. Undefined where repeated
 * and other leading dimensions alternate more often than kernels support. Throws a RangeError for another kind.
 */
export function attentionMask(
  kind: AttentionMaskKind,
  shape: readonly number[],
  lead: readonly number[],
): AttentionMask | undefined {
  requireOneOf("attentionMask", "kind", kind, ["added", "flags", "lengths"]);
  const whole = kind === "lengths" ? [...shape, 1, 1] : shape;
  const padded = [...Array<number>(lead.length + 2 - whole.length).fill(1), ...whole];
  let stride = 1;
  const strides = padded
    .toReversed()
    .map((size) => {
      const own = size === 1 ? 0 : stride;
      stride *= size;
      return own;
    })
    .toReversed();
  const groups: { size: number; stride: number }[] = [];
  for (const [d, size] of lead.entries()) {
    const own = strides[d] as number;
    const outer = groups.at(-1);
    if (size === 1) continue;
    if (outer && outer.stride === own * size) {
      outer.size *= size;
      outer.stride = own;
    } else groups.push({ size, stride: own });
  }
  if (groups.length > 2) return undefined;
  const [outer, inner] = groups.length === 2 ? groups : [undefined, groups[0]];
  return {
    kind,
    inner: inner?.size ?? 1,
    outerStride: outer?.stride ?? 0,
    innerStride: inner?.stride ?? 0,
    queryStride: strides.at(-2) as number,
    keyStride: strides.at(-1) as number,
  };
}

/** The static choices of attention's programs, besides the sizes of their tiles. */
export interface AttentionParts {
  readonly mask: AttentionMaskKind | undefined;
  readonly isDropping: boolean;
  readonly isWindowed: boolean;
  /** Whether heads of queries share heads of keys and values. */
  readonly isGrouped: boolean;
  /** Whether queries and keys, and values, consist of whole quads. */
  readonly isSizeAligned: boolean;
  readonly isWidthAligned: boolean;
  /** Quads of a query, and of a value, rounded up to the sizes of tiles. */
  readonly sizeQuads: number;
  readonly widthQuads: number;
  readonly results: StoredResults;
}

export function attentionParts(attributes: AttentionAttributes): AttentionParts {
  const { size, width, mask, dropout, window, group = 1 } = attributes;
  return {
    mask: mask?.kind,
    isDropping: dropout !== undefined,
    isWindowed: window !== undefined,
    isGrouped: group !== 1,
    isSizeAligned: size % 4 === 0,
    isWidthAligned: width % 4 === 0,
    sizeQuads: roundedQuads(size),
    widthQuads: roundedQuads(width),
    results: "whole",
  };
}

/** 1, 2, 4, 8, 16, 24 … 64: sizes between these share programs. */
function roundedQuads(size: number): number {
  const quads = Math.ceil(size / 4);
  return quads > 8 ? Math.ceil(quads / 8) * 8 : 2 ** Math.ceil(Math.log2(quads));
}

export const variantOf = (parts: AttentionParts): string =>
  [
    `${parts.sizeQuads}${parts.isSizeAligned ? "" : "-"}`,
    `${parts.widthQuads}${parts.isWidthAligned ? "" : "-"}`,
    ...(parts.mask ? [parts.mask] : []),
    ...(parts.isDropping ? ["dropout"] : []),
    ...(parts.isWindowed ? ["window"] : []),
    ...(parts.isGrouped ? ["grouped"] : []),
    ...(parts.results === "whole" ? [] : [parts.results]),
  ].join(",");

/** A kernel for each combination of static choices, made on first use. */
export function byParts<K>(make: (parts: AttentionParts) => K): (parts: AttentionParts) => K {
  const made = new Map<string, K>();
  return (parts) => {
    const key = variantOf(parts);
    const known = made.get(key) ?? make(parts);
    made.set(key, known);
    return known;
  };
}

const maskScalars = ["mask_inner", "mask_outer", "mask_entry", "mask_query", "mask_key"];

export const scalarsOf = ({
  mask,
  isDropping,
  isWindowed,
  isGrouped,
}: AttentionParts): readonly KernelScalar[] => [
  ...["entries", "queries", "keys", "size", "width", "causal"].map(u32),
  { name: "scale", type: "f32" },
  ...(mask ? maskScalars : []).map(u32),
  ...(isWindowed ? [u32("window")] : []),
  ...(isGrouped ? [u32("group")] : []),
  ...(isDropping
    ? [
        ...sourceScalars,
        { name: "threshold", type: "u32", runtime: true } as const,
        { name: "factor", type: "f32", runtime: true } as const,
      ]
    : []),
];

const u32 = (name: string): KernelScalar => ({ name, type: "u32" });

/** A value for each of {@link scalarsOf}. */
export function scalarValues(attributes: AttentionAttributes): Record<string, number> {
  const { entries, queries, keys, size, width, scale, isCausal = false } = attributes;
  const { mask, dropout, window, group = 1 } = attributes;
  return {
    entries,
    queries,
    keys,
    size,
    width,
    scale,
    causal: isCausal ? 1 : 0,
    ...(mask && {
      mask_inner: mask.inner,
      mask_outer: mask.outerStride,
      mask_entry: mask.innerStride,
      mask_query: mask.queryStride,
      mask_key: mask.keyStride,
    }),
    // No wider than all there is, so that sums of positions fit 32 bits.
    ...(window !== undefined && { window: Math.min(window, Math.max(queries, keys)) }),
    ...(group !== 1 && { group }),
    ...(dropout && {
      ...sourceWords(dropout.source),
      threshold: thresholdOf(1 - dropout.p),
      factor: dropout.p === 1 ? 0 : Math.fround(1 / (1 - dropout.p)),
    }),
  };
}

/** Floating-point operations of so many products of queries with keys or values. */
export const operationsOf =
  (sizes: number, widths: number) =>
  ({
    entries = 0,
    queries = 0,
    keys = 0,
    size = 0,
    width = 0,
    causal = 0,
    window = keys,
  }: Readonly<Record<string, number>>): number =>
    (2 * entries * queries * Math.min(keys, 2 * window + 1) * (sizes * size + widths * width)) /
    (1 + causal);
