import {
  type AttentionOptions,
  type Generator,
  type Runtime,
  ShapeError,
  scaledDotProductAttention,
  type Tensor,
} from "@halfstep/tensor/functional";
import { requireArguments, requireTensors } from "../arguments.js";
import { type Initializer, uniform, zeros } from "../init.js";
import { Module } from "../module.js";
import type { TorchLayout } from "../torch-layout.js";
import { Linear } from "./linear.js";

/** Options of {@link MultiheadAttention}. */
export interface MultiheadAttentionOptions {
  /** Default true. */
  readonly bias?: boolean;
  /** Probability with which attention probabilities are dropped in training. Default 0. */
  readonly dropout?: number;
  /**
   * Draws the initial parameters, and the masks of dropout. As in torch the weights of query, key and value start as one Xavier-uniform
   * weight [3 · size, size], the last projection's as those of `Linear`, and biases as zeros.
   */
  readonly generator: Generator;
}

/** Attention of several heads side by side (Vaswani et al. 2017), over sequences [batch, length, size]. */
export class MultiheadAttention extends Module {
  readonly size: number;
  readonly heads: number;
  readonly dropout: number;
  readonly generator: Generator;
  readonly queryProjection: Linear;
  readonly keyProjection: Linear;
  readonly valueProjection: Linear;
  readonly outProjection: Linear;

  constructor(runtime: Runtime, size: number, heads: number, options: MultiheadAttentionOptions);
  constructor(
    runtime: Runtime,
    size: number,
    heads: number,
    options: MultiheadAttentionOptions,
    ...surplus: readonly unknown[]
  ) {
    super();
    requireArguments(
      "new MultiheadAttention(runtime, size, heads, { generator, bias?, dropout? })",
      runtime,
      size,
      heads,
      options,
      ...surplus,
    );
    const { bias = true, dropout = 0, generator } = options;
    if (size % heads !== 0)
      throw new RangeError(
        `MultiheadAttention: a size of ${size} is no multiple of ${heads} heads`,
      );
    this.size = size;
    this.heads = heads;
    this.dropout = dropout;
    this.generator = generator;
    const bound = Math.sqrt(6 / (size + 3 * size));
    const joint: Initializer = (shape) => uniform(shape, generator, -bound, bound);
    const projection = (weightInit?: Initializer): Linear =>
      new Linear(runtime, size, size, {
        ...{ bias, generator, biasInit: zeros },
        ...(weightInit && { weightInit }),
      });
    this.queryProjection = projection(joint);
    this.keyProjection = projection(joint);
    this.valueProjection = projection(joint);
    this.outProjection = projection();
  }

  /**
   * Attention of `query` [batch, queries, size] to `key` and `value` [batch, keys, size]; of a sequence to itself where these are
   * missing. A mask broadcasts to [batch, heads, queries, keys].
   */
  forward(
    query: Tensor,
    key: Tensor = query,
    value: Tensor = key,
    options: Pick<AttentionOptions, "mask" | "isCausal" | "window"> = {},
  ): Tensor {
    requireTensors(this.label, query, key, value);
    for (const x of [query, key, value])
      if (x.rank !== 3 || x.shape[2] !== this.size)
        throw new ShapeError(
          `${this.label} needs sequences [batch, length, ${this.size}], not [${x.shape}]`,
        );
    const { dropout, generator } = this;
    const isDropping = this.isTraining && dropout > 0;
    const attended = scaledDotProductAttention(
      this.#split(this.queryProjection.forward(query)),
      this.#split(this.keyProjection.forward(key)),
      this.#split(this.valueProjection.forward(value)),
      { ...options, ...(isDropping && { dropout: { p: dropout, generator } }) },
    );
    return this.outProjection.forward(attended.permute([0, 2, 1, 3]).reshape(query.shape));
  }

  override get torchLayout(): TorchLayout {
    const projections = ["query_projection", "key_projection", "value_projection"];
    const each = (field: string): string[] => projections.map((name) => `${name}.${field}`);
    return {
      names: { outProjection: "out_proj" },
      stacked: { in_proj_weight: each("weight"), in_proj_bias: each("bias") },
    };
  }

  /** [batch, length, size] as [batch, heads, length, size / heads]. */
  #split(x: Tensor): Tensor {
    const [batch, length] = x.shape as [number, number, number];
    const { size, heads } = this;
    return x.reshape([batch, length, heads, size / heads]).permute([0, 2, 1, 3]);
  }
}
