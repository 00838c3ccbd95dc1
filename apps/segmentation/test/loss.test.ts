import { cpuRuntime } from "@halfstep/tensor";
import { inPrecision } from "@halfstep/trainer";
import { expect, it } from "vitest";
import { diceLoss, segmentationLoss } from "../src/loss.js";
import { ignored } from "../src/masks.js";

const logits = Float32Array.of(2, -1, 0.5, 0, 1, -2, -1.5, 0.25, 3, 0.1, 0.2, 0.3);
const labels = Uint32Array.of(0, 1, 2, 1);

it("is what torch computes, and so are its gradients", async () => {
  // torch 2.13.0: F.cross_entropy(z, y) + 1 − ((2 (p·t).sum(0) + 1) / (p.sum(0) + t.sum(0) + 1)).mean()
  const expected = [
    ...[-0.08675453066825867, 0.015264340676367283, 0.07149019837379456, 0.09732571989297867],
    ...[-0.11054625362157822, 0.013220547698438168, 0.0044068037532269955, 0.024397356435656548],
    ...[-0.028804171830415726, 0.09271124005317688, -0.20646071434020996, 0.11374945938587189],
  ];
  const runtime = cpuRuntime();
  const scores = runtime.variable(logits, [1, 2, 2, 3], { requiresGrad: true });
  const { loss, dice } = await runtime.step(() => {
    const loss = segmentationLoss(scores, runtime.tensor(labels));
    loss.backward();
    return { loss, dice: diceLoss(scores.reshape([-1, 3]), runtime.tensor(labels)) };
  });
  expect(await loss.item()).toBeCloseTo(0.6661297082901001, 6);
  expect(await dice.item()).toBeCloseTo(0.22497433423995972, 6);
  const gradient = Array.from((await scores.grad?.toArray()) ?? []);
  const worst = Math.max(...expected.map((value, i) => Math.abs(value - (gradient[i] as number))));
  expect(worst).toBeLessThan(1e-7);
});

it("takes no notice of pixels that do not count, and weights classes as torch does", async () => {
  const runtime = cpuRuntime();
  const weight = runtime.tensor(Float32Array.of(0.5, 2, 1));
  const lossOf = (rows: readonly number[], labels: readonly number[], options = {}) =>
    runtime.step(() => {
      const scores = runtime.variable(
        Float32Array.from(rows.flatMap((row) => [...logits.subarray(3 * row, 3 * row + 3)])),
        [1, 1, rows.length, 3],
        { requiresGrad: true },
      );
      const loss = segmentationLoss(scores, runtime.tensor(Uint32Array.from(labels)), options);
      loss.backward();
      return loss;
    });
  for (const options of [{}, { weight }]) {
    const counted = await lossOf([0, 1, 3], [0, 1, 1], options);
    const all = await lossOf([0, 1, 2, 3], [0, 1, ignored, 1], { ...options, ignores: true });
    expect(await all.item()).toBeCloseTo(await counted.item(), 6);
  }
  // Not one pixel counts: no class has an area.
  expect(await (await lossOf([0, 1], [ignored, ignored], { ignores: true })).item()).toBe(0);
});

it("sums more pixels than float16 counts to", async () => {
  const runtime = cpuRuntime();
  const pixels = 80_000;
  const loss = await runtime.step(() =>
    inPrecision("float16", () => {
      const scores = runtime.full([1, 200, 400, 2], 0, { dtype: "float16" });
      return diceLoss(scores.reshape([-1, 2]), runtime.tensor(new Uint32Array(pixels)));
    }),
  );
  expect(loss.dtype).toBe("float32");
  // Both classes have half of each pixel, and the first has all labels.
  const first = (pixels + 1) / (1.5 * pixels + 1);
  const second = 1 / (0.5 * pixels + 1);
  expect(await loss.item()).toBeCloseTo(1 - (first + second) / 2, 6);
});
