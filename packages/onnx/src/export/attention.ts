import type { FusedAttention, Probabilities } from "@halfstep/tensor/internals";
import { dataType } from "../data-type.js";
import type { Emission } from "./emission.js";
import type { Reference } from "./graph-builder.js";
import type { Size } from "./size.js";
import { plain } from "./values.js";

/** The least float32: a hidden key's score, whose probability is 0. */
const hidden = -3.4028234663852886e38;

/** Scores [..., queries, keys] plus −∞ for keys behind their query. */
function causal(emission: Emission, scores: Reference, queries: Size, keys: Size): Reference {
  const open = emission.node("Expand", [
    emission.number(dataType.FLOAT, Number.NEGATIVE_INFINITY),
    emission.sizes([queries, keys]),
  ]);
  const behind = emission.node("Trilu", [open, emission.builder.constant(dataType.INT64, 1)], {
    upper: 1,
  });
  return emission.node("Add", [scores, behind]);
}

/**
 * softmax(query keyᵀ · scale + mask) value, in operators. Products are in the operands' type, probabilities are computed in float32, as a
 * policy of autocast would have it. The scale is a factor of the query, so that no score overflows that need not.
 */
export function emitAttention(emission: Emission): void {
  const attributes = emission.attributes<FusedAttention>("mask");
  const { scale, isCausal, window, group, mask, dropout } = attributes;
  if (dropout) throw emission.unsupported("dropout: call eval() on the model");
  if (window !== undefined) throw emission.unsupported("a window of keys");
  if (group !== 1) throw emission.unsupported("heads that share keys and values");
  if (mask?.kind === "lengths") throw emission.unsupported("lengths of keys: pass a mask");
  const [query, key] = [emission.input(0), emission.input(1)];
  const { type } = query;
  const rank = query.shape.length;
  const scaled = emission.node("Mul", [emission.take(0), emission.number(type, scale)]);
  const turned = [...plain(rank - 2), rank - 1, rank - 2];
  const products = emission.node("MatMul", [scaled, emission.take(1, { order: turned })]);
  let scores = emission.cast(products, type, dataType.FLOAT);
  if (isCausal)
    scores = causal(emission, scores, query.shape.at(-2) as Size, key.shape.at(-2) as Size);
  const flags = mask?.kind === "flags" ? emission.take(3, { type: dataType.BOOL }) : undefined;
  if (mask?.kind === "added")
    scores = emission.node("Add", [scores, emission.take(3, { type: dataType.FLOAT })]);
  if (flags)
    scores = emission.node("Where", [flags, scores, emission.number(dataType.FLOAT, hidden)]);
  let probabilities = emission.node("Softmax", [scores], { axis: -1 });
  // A query without visible keys gets zeros.
  if (flags)
    probabilities = emission.node("Where", [
      flags,
      probabilities,
      emission.number(dataType.FLOAT, 0),
    ]);
  const weights = emission.cast(probabilities, dataType.FLOAT, type);
  emission.result(emission.node("MatMul", [weights, emission.take(2)]), { type });
}

/** The softmax of scaled scores, which attention without a fused kernel applies. */
export function emitProbabilities(emission: Emission): void {
  const { scale, causalRows } = emission.attributes<Probabilities>("causalRows");
  const { shape } = emission.input(0);
  const scores = emission.take(0, { type: dataType.FLOAT });
  let scaled =
    scale === 1 ? scores : emission.node("Mul", [scores, emission.number(dataType.FLOAT, scale)]);
  if (causalRows !== undefined)
    scaled = causal(emission, scaled, shape.at(-2) as Size, shape.at(-1) as Size);
  const probabilities = emission.node("Softmax", [scaled], { axis: -1 });
  const type = emission.typeOf();
  emission.result(emission.cast(probabilities, dataType.FLOAT, type), { type });
}
