import type { Gradient, ScaledOptimizer, ScaledStep } from "../src/index.js";

/** `parameters -= gradients`, with gradients that are absent until a backward pass. */
export class Sgd implements ScaledOptimizer<Float32Array> {
  readonly parameters: Float32Array;
  readonly stepSupportsAmpScaling: boolean;
  gradient: Float32Array | undefined;
  /** Whether the last step was told to unscale. */
  unscaledItself = false;

  constructor(parameters: readonly number[], fused = false) {
    this.parameters = Float32Array.from(parameters);
    this.stepSupportsAmpScaling = fused;
  }

  /** Adds `gradients × scaledLoss` to what is there. */
  backward(gradients: readonly number[], scaledLoss: Float32Array): void {
    const gradient = this.gradient ?? new Float32Array(this.parameters.length);
    for (const [i, value] of gradients.entries()) {
      gradient[i] = (gradient[i] as number) + Math.fround(value * (scaledLoss[0] as number));
    }
    this.gradient = gradient;
  }

  zeroGrad(): void {
    this.gradient = undefined;
  }

  *gradients(): Iterable<Gradient<Float32Array>> {
    if (this.gradient !== undefined) {
      yield { buffer: this.gradient, dtype: "float32", name: "weight" };
    }
  }

  step({ foundInf, gradScale }: ScaledStep<Float32Array> = {}): void {
    this.unscaledItself = gradScale !== undefined;
    if (foundInf !== undefined && foundInf[0] !== 0) return;
    const inverseScale = gradScale?.[1] ?? 1;
    for (const [i, value] of (this.gradient ?? []).entries()) {
      this.parameters[i] = (this.parameters[i] as number) - Math.fround(value * inverseScale);
    }
  }
}
