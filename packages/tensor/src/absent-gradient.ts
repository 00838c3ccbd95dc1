import { LeftOutError } from "@halfstep/device";

/** Stands for the gradient of every op in builds with the condition `@halfstep/inference-only`. */
export function absentGradient(): never {
  throw new LeftOutError("@halfstep/inference-only", "the gradients of ops");
}
