// `npm run study -- language-model`: a small GPT in every precision from several seeds.
import type { Study } from "@halfstep/trainer";
import { openRuntime } from "@halfstep/trainer/cli";
import { excerpt, readCorpus } from "./text.js";
import { trainTokenizer } from "./tokenizers/tokenizer.js";
import { type LanguageRun, trainLanguageModel } from "./train.js";

/** A loss so small that gradients in float16 vanish unless it is scaled. */
const lossWeight = 2 ** -14;

const variants: Readonly<
  Record<string, Pick<LanguageRun, "precision" | "lossWeight" | "initScale" | "scaling">>
> = {
  float32: { precision: "float32" },
  float16: { precision: "float16" },
  bfloat16: { precision: "bfloat16" },
  "float16 on a tiny loss": { precision: "float16", lossWeight, initScale: 2 ** 24 },
  "float16 on a tiny loss without scaling": { precision: "float16", lossWeight, scaling: false },
};

const study: Study = {
  app: "language-model",
  metric: { name: "held-out bits per character", unit: "bits", better: "min" },
  variants: Object.keys(variants),
  seeds: 3,
  async run(name, seed) {
    const variant = variants[name];
    if (!variant) throw new RangeError(`there is no variant ${JSON.stringify(name)}`);
    const corpus = await readCorpus();
    const tokenizer = trainTokenizer("char", corpus, 0);
    const { runtime, device, close } = await openRuntime();
    const result = await trainLanguageModel({
      ...variant,
      runtime,
      device,
      seed,
      tokenizer,
      tokens: tokenizer.encode(corpus.train),
      heldOut: excerpt(corpus.heldOut, 50_000),
      layers: 2,
      heads: 4,
      width: 96,
      context: 32,
      dropout: 0,
      bias: true,
      batchSize: 16,
      accumulate: 1,
      maxSteps: 1000,
      lr: 4e-3,
      minLr: 4e-4,
      warmUp: 50,
      weightDecay: 0.1,
      beta2: 0.99,
      clip: 1,
      evalEvery: 1001,
    });
    close();
    if (!result) throw new Error("training was stopped");
    const { test, wallSeconds, peakBytes, skippedSteps } = result;
    return { metric: test.bitsPerCharacter, loss: test.loss, wallSeconds, peakBytes, skippedSteps };
  },
};

export default study;
