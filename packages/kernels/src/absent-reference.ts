import { LeftOutError } from "@halfstep/device";

/** Stands for the JavaScript of every kernel in builds with the condition `@halfstep/gpu-only`. */
export function absentReference(): never {
  throw new LeftOutError("@halfstep/gpu-only", "the JavaScript of kernels, which runs on the CPU");
}
