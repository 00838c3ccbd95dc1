import { createRequire } from "node:module";
import { datasetPackage } from "../../scripts/bootstrap/datasets.mjs";

// It is large, and needed by tests alone: so it has a lock file of its own, and npm start does not download it.
const place = await datasetPackage(new URL("runtime/", import.meta.url), "onnxruntime-node");

export const { InferenceSession, Tensor } = createRequire(import.meta.url)(place);
