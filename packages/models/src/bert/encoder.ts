import {
  Dropout,
  type Generator,
  LayerNorm,
  type Linear,
  Module,
  type TorchLayout,
} from "@halfstep/nn";
import { scaledDotProductAttention, type Tensor } from "@halfstep/tensor/functional";
import { activationOf } from "../activation.js";
import { type BertParts, bertLinear } from "./options.js";

/** Bidirectional transformer layers, each normalised after its residuals. */
export class BertEncoder extends Module {
  readonly layer: readonly BertLayer[];

  constructor(parts: BertParts) {
    super();
    this.layer = Array.from({ length: parts.config.numHiddenLayers }, () => new BertLayer(parts));
  }

  /**
   * @param x [batch, length, hiddenSize]
   * @param mask uint32 that broadcasts to [batch, heads, queries, keys]: 1 where a query may look
   */
  forward(x: Tensor, mask?: Tensor): Tensor {
    return this.layer.reduce((value, layer) => layer.forward(value, mask), x);
  }
}

class BertLayer extends Module {
  readonly attention: BertAttention;
  readonly intermediate: BertIntermediate;
  readonly output: BertOutput;

  constructor(parts: BertParts) {
    super();
    const { hiddenSize, intermediateSize } = parts.config;
    this.attention = new BertAttention(parts);
    this.intermediate = new BertIntermediate(parts);
    this.output = new BertOutput(parts, intermediateSize, hiddenSize);
  }

  forward(x: Tensor, mask?: Tensor): Tensor {
    const y = this.attention.forward(x, mask);
    return this.output.forward(this.intermediate.forward(y), y);
  }
}

class BertAttention extends Module {
  readonly self: BertSelfAttention;
  readonly output: BertOutput;

  constructor(parts: BertParts) {
    super();
    const { hiddenSize } = parts.config;
    this.self = new BertSelfAttention(parts);
    this.output = new BertOutput(parts, hiddenSize, hiddenSize);
  }

  forward(x: Tensor, mask?: Tensor): Tensor {
    return this.output.forward(this.self.forward(x, mask), x);
  }
}

class BertSelfAttention extends Module {
  readonly heads: number;
  readonly dropout: number;
  readonly generator: Generator;
  readonly query: Linear;
  readonly key: Linear;
  readonly value: Linear;

  constructor(parts: BertParts) {
    super();
    const { hiddenSize, numAttentionHeads, attentionProbsDropoutProb } = parts.config;
    if (hiddenSize % numAttentionHeads !== 0)
      throw new RangeError(
        `BERT: hiddenSize ${hiddenSize} is no multiple of numAttentionHeads ${numAttentionHeads}`,
      );
    this.heads = numAttentionHeads;
    this.dropout = attentionProbsDropoutProb;
    this.generator = parts.generator;
    const projection = (): Linear => bertLinear(parts, hiddenSize, hiddenSize);
    this.query = projection();
    this.key = projection();
    this.value = projection();
  }

  forward(x: Tensor, mask?: Tensor): Tensor {
    const [batch, length, size] = x.shape as [number, number, number];
    const { heads, dropout: p, generator } = this;
    const byHead = (projection: Linear): Tensor =>
      projection
        .forward(x)
        .reshape([batch, length, heads, size / heads])
        .permute([0, 2, 1, 3]);
    const isDropping = this.isTraining && p > 0;
    const attended = scaledDotProductAttention(
      byHead(this.query),
      byHead(this.key),
      byHead(this.value),
      { ...(mask && { mask }), ...(isDropping && { dropout: { p, generator } }) },
    );
    return attended.permute([0, 2, 1, 3]).reshape(x.shape);
  }
}

class BertIntermediate extends Module {
  readonly dense: Linear;
  readonly #activation: (x: Tensor) => Tensor;

  constructor(parts: BertParts) {
    super();
    const { hiddenSize, intermediateSize, hiddenAct } = parts.config;
    this.#activation = activationOf(hiddenAct);
    this.dense = bertLinear(parts, hiddenSize, intermediateSize);
  }

  forward(x: Tensor): Tensor {
    return this.#activation(this.dense.forward(x));
  }
}

/** The end of a branch: a linear layer, dropout, and the residual's layer norm. */
class BertOutput extends Module {
  readonly dense: Linear;
  readonly layerNorm: LayerNorm;
  readonly dropout: Dropout;

  constructor(parts: BertParts, from: number, to: number) {
    super();
    const { runtime, generator, config } = parts;
    this.dense = bertLinear(parts, from, to);
    this.layerNorm = new LayerNorm(runtime, to, { eps: config.layerNormEps });
    this.dropout = new Dropout({ p: config.hiddenDropoutProb, generator });
  }

  override get torchLayout(): TorchLayout {
    return { names: { layerNorm: "LayerNorm" } };
  }

  forward(x: Tensor, residual: Tensor): Tensor {
    return this.layerNorm.forward(this.dropout.forward(this.dense.forward(x)).add(residual));
  }
}
