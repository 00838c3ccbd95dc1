import { Mlp } from "@halfstep/models";
import { crossEntropy, type Runtime, type Tensor } from "@halfstep/tensor";

/** Samples of a task that a small network learns within a few dozen steps. */
export interface Samples {
  /** [n, 6] */
  readonly features: Float32Array;
  readonly labels: Uint32Array;
}

const featureCount = 6;

/** Number of classes of the task. */
export const classCount = 3;

/** Points around three centres, without pattern: the same for the same seed. */
export const samples = (count: number, seed: number): Samples => {
  const noise = (i: number): number => {
    const x = Math.sin((i + 1) * 12.9898 + seed * 78.233) * 43758.5453;
    return 2 * (x - Math.floor(x)) - 1;
  };
  const labels = Uint32Array.from({ length: count }, (_, i) => (i * 7 + seed) % classCount);
  const features = Float32Array.from({ length: count * featureCount }, (_, i) => {
    const label = labels[Math.floor(i / featureCount)] as number;
    return (i % featureCount === label ? 1.5 : 0) + 0.5 * noise(i);
  });
  return { features, labels };
};

/** `count` batches of `size` samples each, those of an epoch different from those of the next. */
export const sampleBatches = (count: number, size: number, epoch: number): Samples[] =>
  Array.from({ length: count }, (_, i) => samples(size, 1000 * epoch + i));

/** A network for the task. */
export const classifier = (runtime: Runtime, seed = 1): Mlp =>
  new Mlp(runtime, { sizes: [featureCount, 16, classCount], seed });

/** Its logits for samples, [n, 3]. */
export const logitsOf = (model: Mlp, { features, labels }: Samples): Tensor => {
  const [first] = model.parameters();
  if (!first) throw new Error("a model without parameters has no runtime");
  return model.forward(first.runtime.tensor(features, [labels.length, featureCount]));
};

/** Its mean loss over samples, a scalar. */
export const lossOf = (model: Mlp, batch: Samples): Tensor => {
  const logits = logitsOf(model, batch);
  return crossEntropy(logits, logits.runtime.tensor(batch.labels));
};
