// `npm run study -- super-resolution`: fine-tuning in every precision from several seeds.
import type { Study } from "@halfstep/trainer";
import { openRuntime } from "@halfstep/trainer/cli";
import { type FineTuning, fineTune } from "./fine-tune.js";
import { readPictures } from "./pairs.js";
import { pretrained } from "./pretrained.js";

const smallRate = 2e-5;

const variants: Readonly<
  Record<string, Pick<FineTuning, "precision" | "storage"> & { readonly lr?: number }>
> = {
  float32: { precision: "float32" },
  float16: { precision: "float16" },
  bfloat16: { precision: "bfloat16" },
  // So small a rate changes weights by less than half a unit in bfloat16's last place: without masters most of it is rounded away.
  "bfloat16 weights with masters": {
    precision: "params=bfloat16,compute=bfloat16,output=float32",
    storage: "master",
    lr: smallRate,
  },
  "bfloat16 weights without masters": {
    precision: "params=bfloat16,compute=bfloat16,output=float32",
    storage: "plain",
    lr: smallRate,
  },
};

const study: Study = {
  app: "super-resolution",
  metric: { name: "PSNR of doubled images", unit: "dB", better: "max" },
  variants: Object.keys(variants),
  seeds: 3,
  async run(name, seed) {
    const variant = variants[name];
    if (!variant) throw new RangeError(`there is no variant ${JSON.stringify(name)}`);
    const { runtime, device, close } = await openRuntime();
    const result = await fineTune({
      runtime,
      device,
      seed,
      model: await pretrained(runtime),
      pictures: await readPictures(),
      kernel: "nearest",
      crop: 48,
      batchSize: 8,
      stepsPerEpoch: 100,
      maxSteps: 200,
      lr: 5e-4,
      evalEvery: 201,
      ...variant,
    });
    close();
    if (!result) throw new Error("training was stopped");
    const { test, wallSeconds, peakBytes, skippedSteps } = result;
    const { psnr, before, loss } = test;
    return { metric: psnr, loss, wallSeconds, peakBytes, skippedSteps, before };
  },
};

export default study;
