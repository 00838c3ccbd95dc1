import { float32Primitives, GradScaler, scaledValue } from "@halfstep/grad-scaler";

const weights = new Float32Array([1, 1, 1]);
const gradients = new Float32Array(3);

const optimizer = {
  gradients: () => [{ buffer: gradients, dtype: "float32" as const, name: "weights" }],
  step({ foundInf }: { foundInf?: Float32Array } = {}) {
    if (foundInf?.[0]) return; // this step is skipped
    weights.set(weights.map((weight, i) => weight - 0.5 * (gradients[i] ?? 0)));
  },
};

const scaler = new GradScaler(float32Primitives, { initScale: 2 ** 16, growthInterval: 3 });

for (let step = 1; step <= 5; step += 1) {
  const loss = new Float32Array([0.25]);
  const [scaled = 0] = scaledValue(scaler.scale(loss)); // 0.25 × the scale
  // The "backward pass": gradients carry the scale, and in step 2 they overflow.
  gradients.fill(step === 2 ? Infinity : scaled);
  scaler.step(optimizer);
  scaler.update();
}

for (const { step, status, cause, scaleBefore, scaleAfter } of await scaler.drain()) {
  const why = cause ? ` (${cause.pass} pass overflowed)` : "";
  console.log(`step ${step} ${status}${why}, scale ${scaleBefore} -> ${scaleAfter}`);
}
console.log(`weights ${weights.join(" ")}`);
// step 1 applied, scale 65536 -> 65536
// step 2 skipped (backward pass overflowed), scale 65536 -> 32768
// step 3 applied, scale 32768 -> 32768
// step 4 applied, scale 32768 -> 32768
// step 5 applied, scale 32768 -> 65536
// weights 0.5 0.5 0.5
