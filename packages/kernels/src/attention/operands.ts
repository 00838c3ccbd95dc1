import type { Binding } from "@halfstep/device";
import { requireWithin } from "../attributes.js";
import { requireLengths } from "../operands.js";
import { type AttentionAttributes, maxAttentionSize } from "./shape.js";

/** Operands that the forward pass and both backward passes read. */
export interface AttentionOperands<B> {
  /** [entries, queries, size] */
  readonly query: Binding<B>;
  /** [entries / group, keys, size] */
  readonly key: Binding<B>;
  /** [entries / group, keys, width] */
  readonly value: Binding<B>;
  /** The mask, as the attribute `mask` describes it. */
  readonly mask?: Binding<B> | undefined;
}

/** Operands that the backward passes read besides those of the forward pass. */
export interface AttentionGradientOperands<B> extends AttentionOperands<B> {
  /** [entries, queries, width] */
  readonly outGradient: Binding<B>;
  /** From `attentionStatistics`: float32 [entries, queries, 2]. */
  readonly statistics: Binding<B>;
}

/** Throws unless the operands that all passes share match the attributes. */
export function requireAttention<B>(
  op: string,
  operands: AttentionOperands<B>,
  attributes: AttentionAttributes,
): void {
  const { entries, queries, keys, size, width, mask, dropout, window, group = 1 } = attributes;
  for (const [name, value] of Object.entries({ size, width }))
    if (value < 1 || value > maxAttentionSize)
      throw new RangeError(
        `${op}: ${name} is ${value}, but heads have 1 to ${maxAttentionSize} elements: compute larger ones by matmul and attentionProbabilities`,
      );
  if (!(Number.isInteger(group) && group >= 1 && entries % group === 0))
    throw new RangeError(
      `${op}: ${entries} heads of queries cannot share heads of keys by groups of ${group}: pass a divisor`,
    );
  if (window !== undefined && !(Number.isInteger(window) && window >= 0))
    throw new RangeError(
      `${op}: a window reaches so many whole keys to either side, not ${window}`,
    );
  if (dropout) requireWithin(op, "the probability of dropout", dropout.p, 0, 1);
  const { query, key, value } = operands;
  const lengths = {
    query: entries * queries * size,
    key: (entries / group) * keys * size,
    value: (entries / group) * keys * width,
  };
  requireLengths(op, { query, key, value }, lengths);
  if ((mask === undefined) !== (operands.mask === undefined))
    throw new TypeError(`${op}: a binding "mask" and the attribute that describes it go together`);
  if (dropout && entries * queries * keys >= 2 ** 32)
    throw new RangeError(
      `${op}: dropout numbers at most 2^32 probabilities, not ${entries} × ${queries} × ${keys}: take fewer entries at a time`,
    );
}

/** Throws unless the operands that both backward passes share match the attributes. */
export function requireGradient<B>(
  op: string,
  operands: AttentionGradientOperands<B>,
  attributes: AttentionAttributes,
): void {
  requireAttention(op, operands, attributes);
  const { entries, queries, width } = attributes;
  const { outGradient, statistics } = operands;
  const rows = entries * queries;
  const lengths = { outGradient: rows * width, statistics: rows * 4 };
  requireLengths(op, { outGradient, statistics }, lengths);
}
