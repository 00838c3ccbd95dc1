import { describe, expect, it } from "vitest";
import { basics, type CatalogueEntry, catalogue } from "./catalogue.js";
import { matrices, mixed, noise, Parameters, split, targets, total } from "./targets.js";

/** Steps whose gradients are not finite. The reference does not even see them. */
const isSkipped = (step: number): boolean => step === 0 || step % 37 === 5;

/** Gradients that no step changes: a slope for each element, and noise. Some elements never have any. */
const slope = noise(total, 100);
const gradients = Array.from({ length: 1000 }, (_, step) =>
  noise(total, step).map((v, i) =>
    i % 13 === 5 ? 0 : Math.fround(0.3 * (slope[i] as number) + v),
  ),
);
const notFinite = new Array<number>(total).fill(Number.NaN);

/** Steps an optimizer and its reference by the same gradients, and says how far they are apart, relative to the values. */
async function distance(
  entry: CatalogueEntry,
  make: (typeof all)[number][1],
  steps: number,
): Promise<{ readonly worst: number; readonly path: number }> {
  const target = await make();
  const shapes = entry.isForMatrices ? matrices : mixed;
  const parameters = new Parameters(target, noise(total, 1), "float32", shapes);
  const flag = { buffer: target.allocate(4), offset: 0, length: 1, dtype: "float32" } as const;
  const optimizer = entry.make(target, parameters.flat);
  const reference = entry.reference();
  const start = split(noise(total, 1), shapes);
  const expected = start.map((values, i) => ({
    values,
    shape: Object.values(shapes)[i] as readonly number[],
  }));
  let applied = 0;
  for (let step = 0; step < steps; step++) {
    const own = gradients[step] as number[];
    const skipped = isSkipped(step);
    parameters.setGradients(skipped ? notFinite : own);
    target.write(flag, [Number(skipped)]);
    optimizer.step({ foundInf: flag.buffer });
    if (skipped) continue;
    applied++;
    reference(expected, split(own, shapes), applied, entry.lr);
  }
  const [state] = (await optimizer.stateDict()).groups;
  expect(state?.applied).toBe(applied);
  const want = expected.flatMap(({ values }) => values);
  const got = await parameters.values();
  const size = Math.max(...want.map(Math.abs));
  return {
    worst: Math.max(...got.map((v, i) => Math.abs(v - (want[i] as number)))) / size,
    path: Math.max(...want.map((v, i) => Math.abs(v - (start.flat()[i] as number)))),
  };
}

const all = await targets();

describe("1,000 steps on the CPU follow float64", () => {
  it.each(catalogue.map((entry) => [entry.title, entry] as const))("%s", async (_, entry) => {
    const { worst, path } = await distance(entry, (all[0] as (typeof all)[number])[1], 1000);
    expect(worst).toBeLessThan(1e-4);
    expect(path).toBeGreaterThan(0.01);
  });
});

describe.each(all.slice(1))("40 steps on the %s follow float64", (_, make) => {
  it.each(basics.map((entry) => [entry.title, entry] as const))("%s", async (_title, entry) => {
    const { worst, path } = await distance(entry, make, 40);
    expect(worst).toBeLessThan(1e-4);
    expect(path).toBeGreaterThan(0.001);
  });
});
