import { join } from "node:path";
import type { Runtime } from "@halfstep/tensor";
import { datasetPackage } from "../../../scripts/bootstrap/datasets.mjs";
import { type LayersModel, loadLayersModel } from "./keras/layers-model.js";

/** The files of the package `@upscalerjs/default-model`, by path. */
const shipped = async (path: string): Promise<string> =>
  join(
    await datasetPackage(new URL("../datasets/", import.meta.url), "@upscalerjs/default-model"),
    path,
  );

/** The pretrained network: it doubles images. */
export const pretrained = async (runtime: Runtime): Promise<LayersModel> =>
  loadLayersModel(runtime, await shipped("models/model.json"));

/** A photograph, and its enlargement by the network's authors: the golden pair. */
export const photograph = (): Promise<string> => shipped("assets/fixture.png");
export const golden = (): Promise<string> => shipped("assets/samples/2x/result.png");
