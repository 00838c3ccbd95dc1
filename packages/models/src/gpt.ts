import { DTypeError } from "@halfstep/autocast";
import {
  Dropout,
  Embedding,
  Generator,
  type Initializer,
  LayerNorm,
  Linear,
  Module,
  normal,
  requireArguments,
  type TorchLayout,
  zeros,
} from "@halfstep/nn";
import {
  narrow,
  type Runtime,
  ShapeError,
  scaledDotProductAttention,
  select,
  type Tensor,
} from "@halfstep/tensor/functional";
import { type ActivationName, activationOf } from "./activation.js";
import { TiedHead } from "./tied-head.js";

/** nanoGPT's options. The defaults are those of GPT-2 small (Radford et al. 2019). */
export interface GPTOptions {
  /** Of the initial parameters, and of dropout. */
  readonly seed: number;
  /** Default 50,257. */
  readonly vocabSize?: number;
  /** Tokens of the longest sequence. Default 1024. */
  readonly blockSize?: number;
  /** Default 12. */
  readonly nLayer?: number;
  /** Default 12. */
  readonly nHead?: number;
  /** Features of a token. Default 768. */
  readonly nEmbd?: number;
  /** Features between the two linear layers of a block. Default 4 · nEmbd. */
  readonly nInner?: number;
  /** Between these. Default "gelu_new", GPT-2's approximation by tanh. */
  readonly activation?: ActivationName;
  /** In training, at the end of each branch, and where the two below do not say otherwise. Default 0. */
  readonly dropout?: number;
  /** After the embeddings. Default `dropout`. */
  readonly embdDropout?: number;
  /** On attention. Default `dropout`. */
  readonly attnDropout?: number;
  /** Default 1e-5. */
  readonly layerNormEps?: number;
  /** Whether linear layers and layer norms have biases. Default true, as in GPT-2. */
  readonly bias?: boolean;
  /**
   * Standard deviation of the initial weights. Default 0.02, as in GPT-2 with its 768 features; models of fewer learn faster
   * from larger weights: `0.02 * Math.sqrt(768 / nEmbd)`.
   */
  readonly initializerRange?: number;
}

type Config = Required<GPTOptions>;

const configOf = (options: GPTOptions): Config => {
  const { nEmbd = 768, dropout = 0 } = options;
  return {
    vocabSize: 50_257,
    blockSize: 1024,
    nLayer: 12,
    nHead: 12,
    nEmbd,
    nInner: 4 * nEmbd,
    activation: "gelu_new",
    dropout,
    embdDropout: dropout,
    attnDropout: dropout,
    layerNormEps: 1e-5,
    bias: true,
    initializerRange: 0.02,
    ...options,
  };
};

/** Shared by all parts. */
interface Parts {
  readonly runtime: Runtime;
  readonly generator: Generator;
  readonly config: Config;
}

/**
 * A decoder-only transformer with GPT-2's structure and names, so that its checkpoints load by `loadTorchStateDict`, and nanoGPT's
 * options. The head has the weights of the token embedding.
 */
export class GPT extends Module {
  readonly config: Config;
  /** Draws the masks of dropout. Its offset belongs into a checkpoint. */
  readonly generator: Generator;
  readonly transformer: GPTModel;
  readonly lmHead: TiedHead;

  constructor(runtime: Runtime, options: GPTOptions) {
    super();
    requireArguments(
      "new GPT(runtime, { seed, vocabSize?, blockSize?, nLayer?, nHead?, nEmbd?, nInner?, activation?, dropout?, embdDropout?, attnDropout?, layerNormEps?, bias?, initializerRange? })",
      runtime,
      options,
    );
    this.config = configOf(options);
    this.generator = new Generator(options.seed);
    this.transformer = new GPTModel({ runtime, generator: this.generator, config: this.config });
    this.lmHead = new TiedHead(this.transformer.wte.weight);
  }

  /** How many parameters a model of these options has, which is not built for that. 124,439,808 for GPT-2 small. */
  static parameterCount(options: Omit<GPTOptions, "seed"> = {}): number {
    const { vocabSize, blockSize, nLayer, nEmbd, nInner, bias } = configOf({ seed: 0, ...options });
    const norm = bias ? 2 * nEmbd : nEmbd;
    const biases = bias ? 5 * nEmbd + nInner : 0;
    const block = 4 * nEmbd ** 2 + 2 * nEmbd * nInner + 2 * norm + biases;
    return (vocabSize + blockSize) * nEmbd + nLayer * block + norm;
  }

  override get torchLayout(): TorchLayout {
    return { base: "transformer" };
  }

  /** Two sequences of the token 0. */
  override exampleInputs(): readonly [Tensor] {
    const length = Math.min(this.config.blockSize, 8);
    return [this.lmHead.weight.runtime.tensor(new Uint32Array(2 * length), [2, length])];
  }

  /**
   * @param tokens uint32 [batch, length], of at most `blockSize` tokens
   * @returns logits [batch, length, vocabSize] of the token after each
   */
  forward(tokens: Tensor): Tensor {
    return this.lmHead.forward(this.transformer.forward(tokens));
  }
}

/** GPT without its head: the last layer norm's output for each token. */
export class GPTModel extends Module {
  readonly config: Config;
  readonly wte: Embedding;
  readonly wpe: Embedding;
  readonly drop: Dropout;
  readonly h: readonly Block[];
  readonly lnF: LayerNorm;

  /** @internal Made by {@link GPT}. */
  constructor(parts: Parts) {
    super();
    const { runtime, generator, config } = parts;
    const { vocabSize, blockSize, nLayer, nEmbd, embdDropout, initializerRange } = config;
    const rows = { generator, weightInit: normalOf(initializerRange) };
    this.config = config;
    this.wte = new Embedding(runtime, vocabSize, nEmbd, rows);
    this.wpe = new Embedding(runtime, blockSize, nEmbd, rows);
    this.drop = new Dropout({ p: embdDropout, generator });
    this.h = Array.from({ length: nLayer }, () => new Block(parts));
    this.lnF = normOf(parts);
  }

  override get torchLayout(): TorchLayout {
    return { names: { lnF: "ln_f" }, base: "transformer" };
  }

  /** @param tokens uint32 [batch, length] */
  forward(tokens: Tensor): Tensor {
    const length = tokens.shape[1] as number;
    if (tokens.dtype !== "uint32")
      throw new DTypeError(`GPT: tokens are ${tokens.dtype}; make them from a Uint32Array`);
    if (tokens.rank !== 2 || length > this.config.blockSize)
      throw new ShapeError(
        `GPT needs tokens [batch, length] with at most ${this.config.blockSize} in a sequence, not [${tokens.shape}]`,
      );
    const positions = narrow(this.wpe.weight, 0, 0, length);
    let x = this.drop.forward(this.wte.forward(tokens).add(positions));
    for (const block of this.h) x = block.forward(x);
    return this.lnF.forward(x);
  }
}

class Block extends Module {
  readonly ln1: LayerNorm;
  readonly attn: CausalSelfAttention;
  readonly ln2: LayerNorm;
  readonly mlp: MLP;

  constructor(parts: Parts) {
    super();
    this.ln1 = normOf(parts);
    this.attn = new CausalSelfAttention(parts);
    this.ln2 = normOf(parts);
    this.mlp = new MLP(parts);
  }

  override get torchLayout(): TorchLayout {
    return { names: { ln1: "ln_1", ln2: "ln_2" } };
  }

  forward(x: Tensor): Tensor {
    const y = x.add(this.attn.forward(this.ln1.forward(x)));
    return y.add(this.mlp.forward(this.ln2.forward(y)));
  }
}

class CausalSelfAttention extends Module {
  readonly heads: number;
  readonly dropout: number;
  readonly generator: Generator;
  readonly cAttn: Conv1D;
  readonly cProj: Conv1D;
  readonly residDropout: Dropout;

  constructor(parts: Parts) {
    super();
    const { generator, config } = parts;
    const { nHead, nEmbd, dropout, attnDropout } = config;
    if (nEmbd % nHead !== 0)
      throw new RangeError(`GPT: nEmbd ${nEmbd} is no multiple of nHead ${nHead}`);
    this.heads = nHead;
    this.dropout = attnDropout;
    this.generator = generator;
    this.cAttn = new Conv1D(parts, nEmbd, 3 * nEmbd);
    this.cProj = new Conv1D(parts, nEmbd, nEmbd, residualStd(config));
    this.residDropout = new Dropout({ p: dropout, generator });
  }

  /** Masks, which older checkpoints have. */
  override get torchLayout(): TorchLayout {
    return { ignored: ["bias", "masked_bias"] };
  }

  forward(x: Tensor): Tensor {
    const [batch, length, size] = x.shape as [number, number, number];
    const { heads, generator, dropout: p } = this;
    const parts = this.cAttn
      .forward(x)
      .reshape([batch, length, 3, heads, size / heads])
      .permute([2, 0, 3, 1, 4]);
    const [query, key, value] = [0, 1, 2].map((part) => select(parts, 0, part)) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const isDropping = this.isTraining && p > 0;
    const attended = scaledDotProductAttention(query, key, value, {
      isCausal: true,
      ...(isDropping && { dropout: { p, generator } }),
    });
    const joined = attended.permute([0, 2, 1, 3]).reshape(x.shape);
    return this.residDropout.forward(this.cProj.forward(joined));
  }
}

class MLP extends Module {
  readonly cFc: Conv1D;
  readonly cProj: Conv1D;
  readonly dropout: Dropout;
  readonly #activation: (x: Tensor) => Tensor;

  constructor(parts: Parts) {
    super();
    const { generator, config } = parts;
    const { nEmbd, nInner, activation, dropout } = config;
    this.#activation = activationOf(activation);
    this.cFc = new Conv1D(parts, nEmbd, nInner);
    this.cProj = new Conv1D(parts, nInner, nEmbd, residualStd(config));
    this.dropout = new Dropout({ p: dropout, generator });
  }

  forward(x: Tensor): Tensor {
    const hidden = this.#activation(this.cFc.forward(x));
    return this.dropout.forward(this.cProj.forward(hidden));
  }
}

/** A linear layer whose weight GPT-2's checkpoints have as [in, out]; transformers calls it so. */
class Conv1D extends Linear {
  constructor(parts: Parts, from: number, to: number, std: number = parts.config.initializerRange) {
    const { runtime, generator, config } = parts;
    const { bias } = config;
    super(runtime, from, to, { bias, generator, weightInit: normalOf(std), biasInit: zeros });
  }

  override get torchLayout(): TorchLayout {
    return { orders: { weight: [1, 0] } };
  }
}

/** Each of the 2 · nLayer branches adds to the variance of the residual stream, which this keeps from growing. */
const residualStd = ({ nLayer, initializerRange }: Config): number =>
  initializerRange / Math.sqrt(2 * nLayer);

const normalOf =
  (std: number): Initializer =>
  (shape, generator) =>
    normal(shape, generator, 0, std);

const normOf = ({ runtime, config: { nEmbd, bias, layerNormEps } }: Parts): LayerNorm =>
  new LayerNorm(runtime, nEmbd, { bias, eps: layerNormEps });
