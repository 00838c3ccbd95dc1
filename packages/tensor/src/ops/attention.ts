import { DTypeError } from "@halfstep/autocast";
import { isFloating } from "@halfstep/formats/dtypes";
import * as kernels from "@halfstep/kernels";
import * as kinds from "../arguments/kinds.js";
import * as ownKinds from "../arguments/own-kinds.js";
import { isGradEnabled } from "../autograd/grad-mode.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import { foldHeadLayouts } from "../plan/passes/fold-head-layouts.js";
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
  /** Query i attends to keys i − window … i + window only, and to none after i where `isCausal`. Default: no limit. */
  readonly window?: number;
  /**
   * Heads of queries [..., heads, queries, size] share heads of keys and values [..., fewer heads, keys, size], each as many, as torch's
   * `enable_gqa`. Default false.
   */
  readonly enableGqa?: boolean;
  /** Factor of the scores. Default 1 / √size. */
  readonly scale?: number;
  /** Drops probabilities at random, as in training. Default: none. */
  readonly dropout?: DropoutOptions;
}

/** The attributes of fused attention. Its inputs are query, key, value, and the mask if there is one. */
export interface FusedAttention extends AttentionRule {
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
export const attentionOp: Op<FusedAttention> = defineOp<FusedAttention>({
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
    const ofMask = inputs.slice(3).map(() => undefined);
    if (isGradEnabled()) {
      const isLengths = attributes.mask?.kind === "lengths";
      const whole = composedMask(operands, { mask, isLengths }, attributes.window);
      return [...composedAttentionGradients(operands, whole, gradient, attributes), ...ofMask];
    }
    const statistics = statisticsOp.apply([out, gradient, normalizers], null);
    const read = [...operands, gradient, statistics, ...(mask ? [mask] : [])];
    const query = needs[0] ? queryGradientOp.apply(read, attributes) : undefined;
    const others =
      needs[1] || needs[2] ? keyValueGradientOp.applyAll(read, attributes) : [undefined, undefined];
    return [query, ...others, ...ofMask];
  },
});

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
 * Heads of up to 256 elements are computed by fused kernels (Dao et al. 2022), which keep no tensor of queries × keys, neither
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
        window: kinds.integer,
        enableGqa: kinds.flag,
        scale: kinds.number,
        dropout: ownKinds.dropout,
      }),
    },
  },
  (query: Tensor, key: Tensor, value: Tensor, options: AttentionOptions = {}): Tensor => {
    requireShapes(query, key, value);
    const { isCausal = false, window, dropout } = options;
    if (window !== undefined && window < 0)
      throw new RangeError(
        `scaledDotProductAttention: a window reaches so many keys to either side, not ${window}: pass 0 or more`,
      );
    const { scale = 1 / Math.sqrt(query.shape.at(-1) as number) } = options;
    if (options.mask && isCausal)
      throw new RangeError(
        "scaledDotProductAttention: isCausal is a mask of its own; put it into the mask, or leave the mask out",
      );
    const group = options.enableGqa ? groupOf(query, key, value) : 1;
    // Heads that others share are no dimension that broadcasts.
    const own = group === 1 ? 2 : 3;
    const batch = [query, key, value]
      .map(({ shape }): readonly number[] => shape.slice(0, -own))
      .reduce((a, b) => broadcastShapes("scaledDotProductAttention", a, b));
    const leadOf = ({ shape }: Tensor): readonly number[] => [...batch, ...shape.slice(-own, -2)];
    const lead = leadOf(query);
    const [queries, keys] = [query.shape.at(-2), key.shape.at(-2)] as [number, number];
    const drawn = dropout && drawDropout(query.runtime, product(lead) * queries * keys, dropout);
    const rule = { scale, isCausal, window, group, dropout: drawn };
    const given = maskOf(options, lead, queries, keys);
    const { mask, isLengths } = given;
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
        composedMask([query, key], given, window),
        rule,
      );
    const operands = [query, key, value].map((x) => {
      const shape = [...leadOf(x), ...x.shape.slice(-2)];
      return shape.length === x.rank && product(shape) === x.size ? x : expand(x, shape);
    });
    query.runtime.bring({ foldHeadLayouts });
    return attentionOp.apply([...operands, ...(mask ? [mask] : [])], { ...rule, mask: layout });
  },
);

const isHead = (size: number): boolean => size > 0 && size <= kernels.maxAttentionSize;

interface GivenMask {
  readonly mask: Tensor | undefined;
  /** Whether it has the lengths of sequences of keys. */
  readonly isLengths: boolean;
}

/** Combines a given mask and given lengths into one mask; lengths alone stay lengths. */
function maskOf(
  { mask, keyLengths }: AttentionOptions,
  lead: readonly number[],
  queries: number,
  keys: number,
): GivenMask {
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
  return { mask: hiding(mask, flagsOf(keyLengths, keys)), isLengths: false };
}

/** A mask that hides what either of two hides. */
const hiding = (mask: Tensor, flags: Tensor): Tensor =>
  isFloating(mask.dtype) ? masked(expandTo(mask, flags), flags) : logicalAnd(mask, flags);

/** The mask for attention as products, with lengths and a window as flags. */
function composedMask(
  [query, key]: readonly [Tensor, Tensor, ...unknown[]],
  { mask: given, isLengths }: GivenMask,
  window: number | undefined,
): Tensor | undefined {
  const [queries, keys] = [query.shape.at(-2), key.shape.at(-2)] as [number, number];
  const mask = given && isLengths ? flagsOf(given, keys) : given;
  if (window === undefined) return mask;
  const isNear = new Uint32Array(queries * keys).map((_, at) =>
    Math.abs(Math.floor(at / keys) - (at % keys)) <= window ? 1 : 0,
  );
  const near = query.runtime.tensor(isNear, [queries, keys]);
  return mask ? hiding(mask, near) : near;
}

const broadcasts = (shape: readonly number[], to: readonly number[]): boolean =>
  shape.length <= to.length &&
  shape.every((size, d) => size === 1 || size === to[to.length - shape.length + d]);

const expandTo = (x: Tensor, other: Tensor): Tensor =>
  expand(x, broadcastShapes("scaledDotProductAttention", x.shape, other.shape));

/** Lengths [...] as a mask [..., 1, keys]. */
function flagsOf(lengths: Tensor, keys: number): Tensor {
  const places = lengths.runtime.tensor(new Uint32Array(keys).map((_, key) => key));
  return lt(places, lengths.reshape([...lengths.shape, 1, 1]));
}

/** How many heads of queries share a head of keys and values. */
function groupOf({ shape: q }: Tensor, { shape: k }: Tensor, { shape: v }: Tensor): number {
  const [heads, shared, values] = [q, k, v].map((shape) => shape.at(-3) ?? 0) as [
    number,
    number,
    number,
  ];
  if (!Number.isInteger(heads / shared) || shared !== values)
    throw new ShapeError(
      `scaledDotProductAttention: enableGqa needs query [..., heads, queries, size] and fewer heads of key and value, a divisor of these, not [${q}], [${k}] and [${v}]`,
    );
  return heads / shared;
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
