import { join } from "node:path";
import { packageDirectory } from "@halfstep/data/node";
import type { Runtime } from "@halfstep/tensor";
import { type LayersModel, loadLayersModel } from "./keras/layers-model.js";

/** What the package `@upscalerjs/default-model` ships, by its path. */
const shipped = (path: string): string =>
  join(
    packageDirectory("@upscalerjs/default-model", new URL("../datasets/", import.meta.url).href),
    path,
  );

/** The pretrained network: it doubles images. */
export const pretrained = (runtime: Runtime): Promise<LayersModel> =>
  loadLayersModel(runtime, shipped("models/model.json"));

/** A photograph, and what the network's authors made of it: the golden pair. */
export const photograph = (): string => shipped("assets/fixture.png");
export const golden = (): string => shipped("assets/samples/2x/result.png");
