import { BertForMaskedLM, GPT, resnet20 } from "@halfstep/models";
import { Module } from "@halfstep/nn";
import type { Runtime, Tensor } from "@halfstep/tensor";
import type { TorchModel } from "../lanes/torch.js";
import { cyclicLabels, randomNumbers } from "../samples.js";
import { bytesOf, type Case, trainingTolerance, type Workload } from "../workload.js";
import { bertArchitecture } from "./bert-peers.js";
import { gptArchitecture } from "./gpt-peers.js";
import { jaxResNet, tfjsResNet } from "./resnet-peers.js";
import { trainModel } from "./train-model.js";
import { type Architecture, jaxTransformer, tfjsTransformer } from "./transformer-peers.js";

const lr = 1e-4;

/** A model, and the amount of its work. */
interface Reference {
  readonly name: string;
  readonly items: { readonly count: number; readonly unit: string };
  readonly parameters: number;
  /** Multiplications of a forward pass. */
  readonly multiplications: number;
  /** Elements of the results that a backward pass needs. */
  readonly activations: number;
  readonly isForHardware?: boolean;
  make(runtime: Runtime): Model;
  readonly input: () => TorchModel["input"];
  readonly labels: Uint32Array;
  readonly torch: Pick<TorchModel, "name" | "options">;
  /** What other libraries, which have no such models, are told to compute. */
  readonly peers?: Pick<Case["on"], "jax" | "tfjs">;
  readonly tooSlow?: readonly string[];
}

type Model = Module & { forward(x: Tensor): Tensor };

/** Scores [batch, length, words] as a score for each token, as losses of classifiers have them. */
class PerToken extends Module {
  readonly model: Model;

  constructor(model: Model) {
    super();
    this.model = model;
  }

  forward(tokens: Tensor): Tensor {
    const scores = this.model.forward(tokens);
    return scores.reshape([-1, scores.shape.at(-1) as number]);
  }
}

function resnet(batch: number): Reference {
  const stages = [16, 32, 64].map((channels, i) => {
    const pixels = (32 / 2 ** i) ** 2;
    const from = i === 0 ? 16 : channels / 2;
    const shortcut = i === 0 ? 0 : from * channels;
    return {
      multiplications: pixels * (9 * from * channels + 5 * 9 * channels ** 2 + shortcut),
      // For each of six convolutions: its result, and the results of batch norm and ReLU.
      activations: pixels * channels * 18,
    };
  });
  const make = (runtime: Runtime): Model => resnet20(runtime, { seed: 0 });
  const images = (): Float32Array => randomNumbers(batch * 32 * 32 * 3);
  const labels = cyclicLabels(batch, 10);
  const trained = () => ({ make, images: images(), labels, size: 32, channels: 3, lr });
  const sum = (of: "multiplications" | "activations"): number =>
    stages.reduce((total, stage) => total + stage[of], 0);
  return {
    name: `ResNet-20, 32×32, batch ${batch}`,
    items: { count: batch, unit: "images" },
    parameters: 272_474,
    multiplications: batch * (sum("multiplications") + 32 * 32 * 27 * 16 + 640),
    activations: batch * (sum("activations") + 3 * 32 * 32 * 16),
    make,
    input: () => ({ data: images(), shape: [batch, 32, 32, 3] }),
    labels,
    torch: { name: "resnet" },
    peers: {
      jax: (library) => jaxResNet(library, trained()),
      tfjs: (library) => tfjsResNet(library, trained()),
    },
    // It has no answer after 180 s: its convolutions take a hundred times as long as ours.
    tooSlow: ["jax-wasm"],
  };
}

interface TransformerSize {
  readonly layers: number;
  readonly size: number;
  readonly heads: number;
  readonly words: number;
  readonly batch: number;
  readonly length: number;
}

/** A transformer's parameters but for embeddings are each multiplied once a token; attention is what comes on top. */
function transformer(
  dimensions: TransformerSize,
  {
    isForHardware,
    ...about
  }: Pick<Reference, "name" | "parameters" | "isForHardware" | "make" | "tooSlow">,
  family: "gpt" | "bert",
  architecture: Architecture,
): Reference {
  const { layers, size, heads, words, batch, length } = dimensions;
  const tokens = batch * length;
  // Token 0 is padding in BERT.
  const inputs = (): Uint32Array => cyclicLabels(tokens, words - 1).map((token) => token + 1);
  const labels = cyclicLabels(tokens, words - 1);
  const trained = () => ({
    ...dimensions,
    make: about.make,
    architecture,
    tokens: inputs(),
    labels,
    lr,
  });
  return {
    ...about,
    items: { count: tokens, unit: "tokens" },
    multiplications: tokens * (layers * (12 * size ** 2 + 2 * length * size) + size * words),
    activations: tokens * (layers * (18 * size + 2 * heads * length) + 2 * words),
    input: () => ({ data: inputs(), shape: [batch, length] }),
    labels,
    torch: { name: family, options: { layers, heads } },
    // A one-hot row for each token is too much for large vocabularies.
    ...(isForHardware
      ? { isForHardware }
      : {
          peers: {
            jax: (library) => jaxTransformer(library, trained()),
            tfjs: (library) => tfjsTransformer(library, trained()),
          },
        }),
  };
}

interface GPTSize {
  readonly nLayer: number;
  readonly nHead: number;
  readonly nEmbd: number;
  readonly batch: number;
  readonly length: number;
  /** Default: nanoGPT's for text by characters. */
  readonly vocabSize?: number;
  readonly isForHardware?: boolean;
}

function gpt({ nLayer, nHead, nEmbd, batch, length, vocabSize = 65, ...size }: GPTSize): Reference {
  const options = { vocabSize, blockSize: length, nLayer, nHead, nEmbd };
  return transformer(
    { layers: nLayer, size: nEmbd, heads: nHead, words: vocabSize, batch, length },
    {
      name: `GPT, ${nLayer} layers of ${nEmbd}, ${batch} × ${length} tokens`,
      parameters: GPT.parameterCount(options),
      make: (runtime) => new GPT(runtime, { seed: 0, ...options }),
      ...size,
    },
    "gpt",
    gptArchitecture(nLayer),
  );
}

/** BERT-small of Turc et al. (2019), with fewer words and without dropout. */
function bert(batch: number, length: number): Reference {
  const [layers, size, heads, words] = [4, 512, 8, 8192];
  const make = (runtime: Runtime): Model =>
    new BertForMaskedLM(runtime, {
      seed: 0,
      vocabSize: words,
      hiddenSize: size,
      numHiddenLayers: layers,
      numAttentionHeads: heads,
      intermediateSize: 4 * size,
      maxPositionEmbeddings: length,
      hiddenDropoutProb: 0,
      attentionProbsDropoutProb: 0,
    });
  return transformer(
    { layers, size, heads, words, batch, length },
    {
      name: `BERT, ${layers} layers of ${size}, ${batch} × ${length} tokens`,
      parameters: (words + length + 2) * size + layers * 12 * size ** 2 + size ** 2,
      make,
      // A step takes it half a minute.
      tooSlow: ["tfjs-wasm"],
    },
    "bert",
    bertArchitecture(layers),
  );
}

const caseOf = ({ make, input, labels, torch, peers, ...about }: Reference): Case => ({
  name: about.name,
  isQuick: false,
  ...(about.isForHardware && { isForHardware: true }),
  ...(about.tooSlow && { tooSlow: about.tooSlow }),
  precisions: ["float32", "float16", "bfloat16"],
  items: about.items,
  // A forward pass, and two products backward for each of its own; Adam's seven arrays.
  cost: (precision) => ({
    operations: 6 * about.multiplications,
    bytes: 28 * about.parameters + 3 * about.activations * bytesOf(precision),
  }),
  tolerance: trainingTolerance,
  on: {
    async halfstep(library, precision) {
      const place = await library.open();
      const model = make(place.runtime);
      const { data, shape } = input();
      return trainModel(place, {
        model: shape.length === 2 ? new PerToken(model) : model,
        input: place.runtime.tensor(data, shape),
        labels,
        precision,
        lr,
      });
    },
    torch: (library, precision) =>
      library.training({ ...torch, make, input: input(), labels, precision, lr }),
    ...peers,
  },
});

export const referenceModels: Workload = {
  name: "models",
  title: "Training step of the reference models with Adam",
  level: "training",
  cases: [
    resnet(32),
    gpt({ nLayer: 4, nHead: 4, nEmbd: 128, batch: 12, length: 64 }),
    gpt({ nLayer: 6, nHead: 6, nEmbd: 384, batch: 2, length: 256 }),
    bert(2, 128),
    gpt({
      nLayer: 12,
      nHead: 12,
      nEmbd: 768,
      batch: 8,
      length: 1024,
      vocabSize: 50_304,
      isForHardware: true,
    }),
  ].map(caseOf),
};
