// `npm run study -- text`: words of the Brown corpus tagged, in every precision from several seeds.
import type { Study } from "@halfstep/trainer";
import { openRuntime } from "@halfstep/trainer/cli";
import { smallShape } from "./model-shape.js";
import { featuresFor, prepareTask, tokenizerFor } from "./prepare.js";
import { taskDefaults } from "./task-defaults.js";
import { readTask } from "./tasks.js";

const variants: Readonly<Record<string, string>> = {
  float32: "float32",
  float16: "float16",
  bfloat16: "bfloat16",
  // Small updates of weights in bfloat16 are lost: what masters are for.
  "bfloat16 without masters": "params=bfloat16,compute=bfloat16,output=float32",
};

/** A quarter of an epoch. */
const steps = 400;

const study: Study = {
  app: "text",
  metric: { name: "accuracy of tags on Brown", unit: "%", better: "max" },
  variants: Object.keys(variants),
  seeds: 3,
  async run(variant, seed) {
    const precision = variants[variant];
    if (precision === undefined)
      throw new RangeError(`there is no variant ${JSON.stringify(variant)}`);
    const defaults = taskDefaults.tags;
    const data = await readTask({
      ...{ task: "tags", mailPart: "body", words: 60, corpus: "brown", fold: 0 },
    });
    const tokenizer = await tokenizerFor(data, defaults.leastCount);
    const features = featuresFor(data, defaults.leastFeature);
    const { runtime, device, close } = await openRuntime();
    const shape = smallShape({ ...defaults, vocabulary: tokenizer.vocabulary });
    const settings = { ...defaults, features, precision, seed, crf: true, maxSteps: steps };
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
