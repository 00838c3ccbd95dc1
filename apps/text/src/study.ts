// `npm run study -- text`: words of the Brown corpus tagged, in every precision from several seeds.
import type { Study } from "@halfstep/trainer";
import { openRuntime } from "@halfstep/trainer/cli";
import { smallShape } from "./model-shape.js";
import { featuresFor, prepareTask, tokenizerFor } from "./prepare.js";
import { taskDefaults } from "./task-defaults.js";
import { readTask } from "./tasks.js";

interface Variant {
  readonly precision: string;
  readonly staticLossScale?: number;
}

const variants: Readonly<Record<string, Variant>> = {
  float32: { precision: "float32" },
  float16: { precision: "float16" },
  bfloat16: { precision: "bfloat16" },
  // Small updates of weights in bfloat16 are lost, which masters prevent.
  "bfloat16 without masters": { precision: "params=bfloat16,compute=bfloat16,output=float32" },
  // Every gradient overflows, and every step is skipped, which a dynamic scale prevents.
  "float16, loss scale fixed at 2^32": { precision: "float16", staticLossScale: 2 ** 32 },
};

/** A quarter of an epoch. */
const steps = 400;

const study: Study = {
  app: "text",
  metric: { name: "accuracy of tags on Brown", unit: "%", better: "max" },
  variants: Object.keys(variants),
  seeds: 3,
  async run(variant, seed) {
    const chosen = variants[variant];
    if (!chosen) throw new RangeError(`there is no variant ${JSON.stringify(variant)}`);
    const defaults = taskDefaults.tags;
    const data = await readTask({
      ...{ task: "tags", mailPart: "body", words: 60, corpus: "brown", fold: 0 },
    });
    const tokenizer = await tokenizerFor(data, defaults.leastCount);
    const features = featuresFor(data, defaults.leastFeature);
    const { runtime, device, close } = await openRuntime();
    const shape = smallShape({ ...defaults, vocabulary: tokenizer.vocabulary });
    const settings = { ...defaults, ...chosen, features, seed, crf: true, maxSteps: steps };
    const result = await prepareTask(runtime, data, tokenizer, { ...settings, shape }).train({
      ...settings,
      ...{ runtime, device, accumulate: 1, warmup: 0.1, layerDecay: 1, adversarial: 0 },
    });
    close();
    if (!result) throw new Error("training was stopped");
    const { test, wallSeconds, peakBytes, skippedSteps } = result;
    const metric = 100 * (test.accuracy ?? Number.NaN);
    return { metric, loss: test.loss, wallSeconds, peakBytes, skippedSteps };
  },
};

export default study;
