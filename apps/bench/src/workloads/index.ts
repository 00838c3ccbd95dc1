import type { Workload } from "../workload.js";
import { attention } from "./attention.js";
import { convolutions } from "./convolution.js";
import { digits } from "./digits.js";
import { elementwise } from "./elementwise.js";
import { gemm } from "./gemm.js";
import { mlp } from "./mlp.js";
import { optimizers } from "./optimizer.js";
import { referenceModels } from "./reference-models.js";
import { rowOperations } from "./rows.js";
import { scaling } from "./scaling.js";

/** Everything that can be measured. A new workload is a file beside this one, and a line here. */
export const workloads: readonly Workload[] = [
  gemm,
  convolutions,
  attention,
  rowOperations,
  elementwise,
  optimizers,
  mlp,
  digits,
  referenceModels,
  ...scaling,
];
