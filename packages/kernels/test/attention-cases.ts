import type { DType, HalfDType } from "@halfstep/device";
import { attention } from "../src/attention/forward.js";
import { attentionKeyValueGradient } from "../src/attention/key-value-gradient.js";
import { attentionQueryGradient } from "../src/attention/query-gradient.js";
import {
  type AttentionAttributes,
  type AttentionMaskKind,
  attentionMask,
} from "../src/attention/shape.js";
import { attentionStatistics } from "../src/attention/statistics.js";
import { dropout } from "../src/random.js";
import { type Launches, runOnCpu, testValues, withoutSubgroups } from "./harness.js";

/** A case of attention: all of its launches, their operands, and their results in float64. */
export interface Case {
  readonly lead: readonly number[];
  readonly queries: number;
  readonly keys: number;
  readonly size: number;
  /** Default: size. */
  readonly width?: number;
  readonly isCausal?: boolean;
  readonly window?: number;
  readonly group?: number;
  readonly mask?: readonly [kind: AttentionMaskKind, shape: readonly number[]];
  readonly p?: number;
  readonly storage?: "float32" | HalfDType;
  /** Default true. */
  readonly hasSubgroups?: boolean;
}

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

export function attributesOf({
  lead,
  queries,
  keys,
  size,
  width = size,
  ...options
}: Case): AttentionAttributes {
  const { isCausal, window, group, mask, p } = options;
  return {
    entries: product(lead),
    queries,
    keys,
    size,
    width,
    scale: 0.5,
    ...(isCausal && { isCausal }),
    window,
    group,
    ...(mask && { mask: attentionMask(mask[0], mask[1], lead) }),
    ...(p !== undefined && { dropout: { p, source: { seed: 7, block: 3, stream: 1 } } }),
  };
}

/** Flags that hide every fifth element, and the whole of row 1 of a mask with rows; lengths from 0 on; −∞ among the numbers added. */
function maskValues([kind, shape]: NonNullable<Case["mask"]>, keys: number): Float32Array {
  const length = product(shape);
  const columns = shape.at(-1) as number;
  switch (kind) {
    case "lengths":
      return Float32Array.from({ length }, (_, i) => (i * 3) % (keys + 2));
    case "flags":
      return Float32Array.from({ length }, (_, i) =>
        i % 5 === 2 || Math.floor(i / columns) === 1 ? 0 : i + 1,
      );
    default:
      return testValues(length, 5).map((v, i) => (i % 7 === 3 ? -Infinity : v * 4));
  }
}

interface Stored {
  readonly dtype?: DType;
}

interface Given extends Stored {
  readonly values: Float32Array;
}

interface Filled extends Stored {
  readonly values: number;
}

/** Operands of all launches. */
export interface CaseOperands {
  readonly [name: string]: Given | Filled;
  readonly query: Given;
  readonly key: Given;
  readonly value: Given;
  readonly outGradient: Given;
  /** One word where there is no mask. */
  readonly mask: Given | Filled;
  readonly out: Filled;
  readonly normalizers: Filled;
  readonly statistics: Filled;
  readonly queryGradient: Filled;
  readonly keyGradient: Filled;
  readonly valueGradient: Filled;
}

export function operandsOf(attributes: Case): CaseOperands {
  const { entries, queries, keys, size, width, group = 1 } = attributesOf(attributes);
  const shared = entries / group;
  const { storage: dtype = "float32", mask } = attributes;
  return {
    query: { values: testValues(entries * queries * size, 1), dtype },
    key: { values: testValues(shared * keys * size, 2), dtype },
    value: { values: testValues(shared * keys * width, 3), dtype },
    out: { values: entries * queries * width, dtype },
    normalizers: { values: entries * queries * 2 },
    outGradient: { values: testValues(entries * queries * width, 4), dtype },
    statistics: { values: entries * queries * 4 },
    queryGradient: { values: entries * queries * size, dtype },
    keyGradient: { values: shared * keys * size, dtype },
    valueGradient: { values: shared * keys * width, dtype },
    mask: mask
      ? { values: maskValues(mask, keys), dtype: mask[0] === "added" ? dtype : ("uint32" as const) }
      : { values: 1 },
  };
}

export const launchesOf =
  (test: Case): Launches<CaseOperands> =>
  (given, operands) => {
    const target = test.hasSubgroups === false ? withoutSubgroups(given) : given;
    const bound = test.mask ? operands : { ...operands, mask: undefined };
    const attributes = attributesOf(test);
    attention(target, bound, attributes);
    target.launch(attentionStatistics(bound, attributes));
    attentionQueryGradient(target, bound, attributes);
    attentionKeyValueGradient(target, bound, attributes);
  };

type Gradient = "queryGradient" | "keyGradient" | "valueGradient";

/** Attention by its definition, in float64. */
export function definition(
  test: Case,
  operands: CaseOperands = operandsOf(test),
): Readonly<Record<"out" | "normalizers" | Gradient, Float64Array>> {
  const { lead, queries, keys, size, width = size, isCausal, window, mask, p: rate } = test;
  const { query, key, value, outGradient: gradient, mask: given } = operands;
  const entries = product(lead);
  const { group = 1 } = test;
  const shared = entries / group;
  const layout = mask && attentionMask(mask[0], mask[1], lead);
  const factors = droppedOnes(test);
  const out = new Float64Array(entries * queries * width);
  const normalizers = new Float64Array(entries * queries * 2);
  const queryGradient = new Float64Array(entries * queries * size);
  const keyGradient = new Float64Array(shared * keys * size);
  const valueGradient = new Float64Array(shared * keys * width);
  const dot = (a: Float32Array, i: number, b: Float32Array, j: number, n: number): number => {
    let sum = 0;
    for (let c = 0; c < n; c++) sum += (a[i * n + c] as number) * (b[j * n + c] as number);
    return sum;
  };
  const add = (to: Float64Array, i: number, x: Float32Array, j: number, n: number, by: number) => {
    for (let c = 0; c < n; c++)
      to[i * n + c] = (to[i * n + c] as number) + by * (x[j * n + c] as number);
  };
  for (let e = 0; e < entries; e++)
    for (let i = 0; i < queries; i++) {
      const row = e * queries + i;
      const firstKey = Math.floor(e / group) * keys;
      const scores = Array.from({ length: keys }, (_, j) => {
        const score = dot(query.values, row, key.values, firstKey + j, size) * 0.5;
        if (isCausal && j > i) return -Infinity;
        if (window !== undefined && Math.abs(i - j) > window) return -Infinity;
        if (!layout || typeof given.values === "number") return score;
        const { inner, outerStride, innerStride, queryStride, keyStride } = layout;
        const at = Math.floor(e / inner) * outerStride + (e % inner) * innerStride;
        const element = given.values[at + i * queryStride + j * keyStride] as number;
        if (layout.kind === "added") return score + element;
        return (layout.kind === "flags" ? element !== 0 : j < element) ? score : -Infinity;
      });
      const top = Math.max(...scores, -1e300);
      const weights = scores.map((score) => Math.exp(score - top));
      const total = weights.reduce((a, b) => a + b, 0);
      if (total > 0) normalizers.set([top, Math.log(total)], row * 2);
      const p = weights.map((weight) => weight / (total || 1));
      const factor = (j: number): number =>
        rate === undefined ? 1 : (factors[row * keys + j] as number);
      const changes = p.map(
        (_, j) => dot(gradient.values, row, value.values, firstKey + j, width) * factor(j),
      );
      const average = p.reduce((sum, weight, j) => sum + weight * (changes[j] as number), 0);
      for (const [j, weight] of p.entries()) {
        const other = firstKey + j;
        const change = weight * ((changes[j] as number) - average) * 0.5;
        add(out, row, value.values, other, width, weight * factor(j));
        add(valueGradient, other, gradient.values, row, width, weight * factor(j));
        add(queryGradient, row, key.values, other, size, change);
        add(keyGradient, other, query.values, row, size, change);
      }
    }
  return { out, normalizers, queryGradient, keyGradient, valueGradient };
}

/** The result of dropout of ones instead of probabilities. */
export function droppedOnes(test: Case): ArrayLike<number> {
  const { entries, queries, keys, dropout: drop } = attributesOf(test) as AttentionAttributes;
  if (!drop) return [];
  const length = entries * queries * keys;
  const operands = { input: { values: new Float32Array(length).fill(1) }, out: { values: length } };
  return runOnCpu(operands, (target, bound) => target.launch(dropout(bound, drop.source, drop.p)))
    .out;
}
