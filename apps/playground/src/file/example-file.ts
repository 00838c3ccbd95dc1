import { philox4x32 } from "@halfstep/formats/philox";
import { writeSafetensors } from "@halfstep/safetensors";

/** Made-up tensors that have what real ones have: usual weights, an outlier, tiny moments, large statistics. */
export function exampleFile(): ArrayBuffer {
  const tensor = (shape: readonly number[], scale: number, seed: number) => ({
    dtype: "F32" as const,
    shape,
    data: normalNumbers(
      shape.reduce((a, b) => a * b),
      seed,
    ).map((value) => value * scale),
  });
  const outlier = tensor([256, 64], 0.05, 2);
  outlier.data[77] = 1200;
  return writeSafetensors({
    "layers.0.weight": tensor([256, 64], 0.05, 1),
    "layers.1.weight (one outlier)": outlier,
    "layers.1.bias": tensor([256], 0.01, 3),
    "optimizer.exp_avg_sq": tensor([256, 64], 1e-8, 4),
    "norm.running_var": tensor([256], 90_000, 5),
  }).buffer;
}

/** Normal numbers by Box and Muller. */
function normalNumbers(count: number, seed: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => {
    const [a, b] = philox4x32([i, 0, 0, 0], [seed, 0]);
    return Math.sqrt(-2 * Math.log((a + 1) / 2 ** 32)) * Math.cos((2 * Math.PI * b) / 2 ** 32);
  });
}
