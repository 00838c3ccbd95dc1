import { DTypeError } from "@halfstep/autocast";
import { isFloating } from "@halfstep/formats/dtypes";
import * as kernels from "@halfstep/kernels";
import * as kinds from "../arguments/kinds.js";
import * as ownKinds from "../arguments/own-kinds.js";
import { isGradEnabled } from "../autograd/grad-mode.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import {
  type AttentionRule,
  composedAttention,
  composedAttentionGradients,
  masked,
} from "./attention-probabilities.js";
import { logicalAnd, lt } from "./comparison.js";
import { broadcastShapes } from "./pointwise.js";
import { type DropoutOptions, drawDropout } from "./random.js";
import { expand } from "./shape.js";

/** Options of {@link scaledDotProductAttention}. */
export interface AttentionOptions {
  /**
   * Broadcasts to [..., queries, keys]. Floating: added to the scaled scores. A mask (uint32), as comparisons return it: 1 where
   * a query may attend to a key.
   */
  readonly mask?: Tensor;
  /** How many keys each sequence has before its padding, integers: broadcasts to the dimensions before [keys, size]. */
  readonly keyLengths?: Tensor;
  /** Query i attends to keys 0 … i only. Default false. */
  readonly isCausal?: boolean;
  /** Factor of the scores. Default 1 / √size. */
  readonly scale?: number;
  /** Drops probabilities at random, as in training. Default: none. */
  readonly dropout?: DropoutOptions;
}

/** The attributes of fused attention. Its inputs are query, key, value, and the mask if there is one. */
interface FusedAttention extends AttentionRule {
  readonly mask: kernels.AttentionMask | undefined;
}

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

function attributesOf(
  [query, , value]: readonly Pick<TensorSpec, "shape">[],
  rule: FusedAttention,
): kernels.AttentionAttributes {
  const [q, v] = [query, value].map((x) => (x as TensorSpec).shape) as [number[], number[]];
  const [queries, size] = q.slice(-2) as [number, number];
  const [keys, width] = v.slice(-2) as [number, number];
  return { entries: product(q.slice(0, -2)), queries, keys, size, width, ...rule };
}

/** Operands of a kernel from the inputs of an op: query, key, value, further operands, and the mask if there is one. */
const operandsOf = <T>([query, key, value]: readonly T[], mask: T | undefined) => ({
  query: query as T,
  key: key as T,
  value: value as T,
  mask,
});

/** Attention without its probabilities in memory: the result, and the normalizers of each row. */
const attentionOp: Op<FusedAttention> = defineOp<FusedAttention>({
  name: "attention",
  castPolicy: "none",
  shape([query, , value]) {
    const { shape, dtype } = query as TensorSpec;
    const rows = shape.slice(0, -1);
    const width = (value as TensorSpec).shape.at(-1) as number;
    return [
      { shape: [...rows, width], dtype },
      { shape: [...rows, 2], dtype: "float32" },
    ];
  },
  forward({ target, inputs, outputs, attributes }) {
    const [out, normalizers] = outputs as [Operand, Operand];
    const operands = { ...operandsOf(inputs, inputs[3]), out, normalizers };
    kernels.attention(target, operands, attributesOf(inputs, attributes));
  },
  backward({ inputs, outputs, gradients, needs, attributes }) {
    const [out, normalizers] = outputs as [Tensor, Tensor];
    const [gradient, mask] = [gradients[0] as Tensor, inputs[3]];
    const operands = inputs.slice(0, 3) as [Tensor, Tensor, Tensor];
    if (isGradEnabled()) {
      const flags =
        mask && attributes.mask?.kind === "lengths" ? flagsOf(mask, keysOf(operands)) : mask;
      return composedAttentionGradients(operands, flags, gradient, attributes);
    }
    const statistics = statisticsOp.apply([out, gradient, normalizers], null);
    const read = [...operands, gradient, statistics, ...(mask ? [mask] : [])];
    const query = needs[0] ? queryGradientOp.apply(read, attributes) : undefined;
    if (!needs[1] && !needs[2]) return [query];
    return [query, ...keyValueGradientOp.applyAll(read, attributes)];
  },
});

const keysOf = ([, key]: readonly [Tensor, Tensor, Tensor]): number => key.shape.at(-2) as number;

const statisticsOp: Op<null> = defineOp<null>({
  name: "attentionStatistics",
  castPolicy: "none",
  shape: ([, , normalizers]) => [
    { shape: [...(normalizers as TensorSpec).shape.slice(0, -1), 4], dtype: "float32" },
  ],
  forward({ target, inputs, outputs }) {
    const [out, outGradient, normalizers] = inputs as [Operand, Operand, Operand];
    target.launch(
      kernels.attentionStatistics(
        { out, outGradient, normalizers, statistics: outputs[0] as Operand },
        {
          entries: product(normalizers.shape.slice(0, -2)),
          queries: normalizers.shape.at(-2) as number,
          width: out.shape.at(-1) as number,
        },
      ),
    );
  },
  backward: "none",
});

/** Operands of the backward kernels from the inputs of their ops. */
const gradientOperandsOf = (inputs: readonly Operand[]) => ({
  ...operandsOf(inputs, inputs[5]),
  outGradient: inputs[3] as Operand,
  statistics: inputs[4] as Operand,
});

const queryGradientOp: Op<FusedAttention> = defineOp<FusedAttention>({
  name: "attentionQueryGradient",
  castPolicy: "none",
  shape: ([query]) => [query as TensorSpec],
  forward({ target, inputs, outputs, attributes }) {
    const operands = { ...gradientOperandsOf(inputs), queryGradient: outputs[0] as Operand };
    kernels.attentionQueryGradient(target, operands, attributesOf(inputs, attributes));
  },
  backward: "none",
});

const keyValueGradientOp: Op<FusedAttention> = defineOp<FusedAttention>({
  name: "attentionKeyValueGradient",
  castPolicy: "none",
  shape: ([, key, value]) => [key as TensorSpec, value as TensorSpec],
  forward({ target, inputs, outputs, attributes }) {
    const [keyGradient, valueGradient] = outputs as [Operand, Operand];
    const operands = { ...gradientOperandsOf(inputs), keyGradient, valueGradient };
    kernels.attentionKeyValueGradient(target, operands, attributesOf(inputs, attributes));
  },
  backward: "none",
});

/**
 * softmax(query keyᵀ · scale + mask) value, of query [..., queries, size], key [..., keys, size] and value [..., keys, width], as
 * torch.nn.functional.scaled_dot_product_attention. Scores are float32 whatever the dtype. A query without visible keys gets
 * zeros.
 *
 * Heads of up to 128 elements are computed by fused kernels (Dao et al. 2022), which keep no tensor of queries × keys, neither
 * here nor for the backward pass. The gradient of an added mask and second derivatives need that tensor.
 */
export const scaledDotProductAttention: Composite<
  (query: Tensor, key: Tensor, value: Tensor, options?: AttentionOptions) => Tensor
> = composite(
  {
    name: "scaledDotProductAttention",
    castPolicy: "lowerPrecision",
    parameters: {
      query: kinds.tensor,
      key: kinds.tensor,
      value: kinds.tensor,
      options: kinds.optionals({
        mask: kinds.tensor,
        keyLengths: kinds.tensor,
        isCausal: kinds.flag,
        scale: kinds.number,
        dropout: ownKinds.dropout,
      }),
    },
  },
  (query: Tensor, key: Tensor, value: Tensor, options: AttentionOptions = {}): Tensor => {
    requireShapes(query, key, value);
    const { isCausal = false, dropout } = options;
    const { scale = 1 / Math.sqrt(query.shape.at(-1) as number) } = options;
    if (options.mask && isCausal)
      throw new RangeError(
        "scaledDotProductAttention: isCausal is a mask of its own; put it into the mask, or leave the mask out",
      );
    const lead = [query, key, value]
      .map(({ shape }): readonly number[] => shape.slice(0, -2))
      .reduce((a, b) => broadcastShapes("scaledDotProductAttention", a, b));
    const [queries, keys] = [query.shape.at(-2), key.shape.at(-2)] as [number, number];
    const drawn = dropout && drawDropout(query.runtime, product(lead) * queries * keys, dropout);
    const rule = { scale, isCausal, dropout: drawn };
    const { mask, isLengths } = maskOf(options, lead, queries, keys);
    const kind = isLengths ? "lengths" : mask && isFloating(mask.dtype) ? "added" : "flags";
    const layout = mask && kernels.attentionMask(kind, mask.shape, lead);
    const isFused =
      [query, value].every(({ shape }) => isHead(shape.at(-1) as number)) &&
      (mask === undefined || layout !== undefined) &&
      !(mask?.requiresGrad && isGradEnabled()) &&
      !(drawn && product(lead) * queries * keys >= 2 ** 32);
    if (!isFused)
      return composedAttention(
        [query, key, value],
        isLengths ? flagsOf(mask as Tensor, keys) : mask,
        rule,
      );
    const operands = [query, key, value].map((x) => {
      const shape = [...lead, ...x.shape.slice(-2)];
      return shape.length === x.rank && product(shape) === x.size ? x : expand(x, shape);
    });
    return attentionOp.apply([...operands, ...(mask ? [mask] : [])], { ...rule, mask: layout });
  },
);

const isHead = (size: number): boolean => size > 0 && size <= kernels.maxAttentionSize;

/** Combines a given mask and given lengths into one mask; lengths alone stay lengths. */
function maskOf(
  { mask, keyLengths }: AttentionOptions,
  lead: readonly number[],
  queries: number,
  keys: number,
): { readonly mask: Tensor | undefined; readonly isLengths: boolean } {
  const scores = [...lead, queries, keys];
  if (mask && !broadcasts(mask.shape, scores))
    throw new ShapeError(
      `scaledDotProductAttention: a mask [${mask.shape}] does not broadcast to the scores [${scores}]`,
    );
  if (!keyLengths) return { mask, isLengths: false };
  if (isFloating(keyLengths.dtype))
    throw new DTypeError(
      `scaledDotProductAttention: keyLengths are integers, not ${keyLengths.dtype}: make them with a Uint32Array`,
    );
  if (!broadcasts(keyLengths.shape, lead))
    throw new ShapeError(
      `scaledDotProductAttention: keyLengths [${keyLengths.shape}] do not broadcast to [${lead}], the dimensions before [keys, size]`,
    );
  if (!mask) return { mask: keyLengths, isLengths: true };
  const flags = flagsOf(keyLengths, keys);
  const both = isFloating(mask.dtype)
    ? masked(expandTo(mask, flags), flags)
    : logicalAnd(mask, flags);
  return { mask: both, isLengths: false };
}

const broadcasts = (shape: readonly number[], to: readonly number[]): boolean =>
  shape.length <= to.length &&
  shape.every((size, d) => size === 1 || size === to[to.length - shape.length + d]);

const expandTo = (x: Tensor, other: Tensor): Tensor =>
  expand(x, broadcastShapes("scaledDotProductAttention", x.shape, other.shape));

/** Lengths [...] as a mask [..., 1, keys]. */
function flagsOf(lengths: Tensor, keys: number): Tensor {
  const places = lengths.runtime.tensor(Uint32Array.from({ length: keys }, (_, key) => key));
  return lt(places, lengths.reshape([...lengths.shape, 1, 1]));
}

function requireShapes(query: Tensor, key: Tensor, value: Tensor): void {
  const [q, k, v] = [query, key, value].map(({ shape }) => shape) as [number[], number[], number[]];
  const fits = q.length >= 2 && k.length >= 2 && v.length >= 2;
  if (!fits || q.at(-1) !== k.at(-1) || k.at(-2) !== v.at(-2))
    throw new ShapeError(
      `scaledDotProductAttention needs query [..., queries, size], key [..., keys, size] and value [..., keys, width], not [${q}], [${k}] and [${v}]`,
    );
  if (query.dtype !== key.dtype || key.dtype !== value.dtype)
    throw new DTypeError(
      `scaledDotProductAttention: operands are ${query.dtype}, ${key.dtype} and ${value.dtype}; cast them with to()`,
    );
}
