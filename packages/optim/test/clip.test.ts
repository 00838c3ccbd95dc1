import { expect, test } from "vitest";
import { clipGradNorm, clipGradNormPerGroup, clipGradValue, SGD } from "../src/index.js";
import { noise, Parameters, targets, total } from "./targets.js";

const first = noise(total, 1);
const second = noise(total, 2).map((g) => 8 * g);

const normOf = (gradients: readonly number[], p: number): number =>
  p === Infinity
    ? Math.max(...gradients.map(Math.abs))
    : gradients.reduce((sum, g) => sum + Math.abs(g) ** p, 0) ** (1 / p);

const near = (a: number, b: number): boolean => Math.abs(a - b) <= 2 ** -18 * Math.abs(b);

test.each(await targets())(
  "gradients are clipped by any norm, and by value: %s",
  async (_, make) => {
    const target = await make();
    const parameters = [first, second].map((values) => new Parameters(target, values));
    const groups = parameters.map(({ flat: params }) => ({ params }));
    const optimizer = new SGD(target, groups, { lr: 0 });
    const reset = (): void => {
      for (const [i, each] of parameters.entries())
        each.setGradients([first, second][i] as number[]);
    };
    const gradients = (): Promise<number[][]> =>
      Promise.all(parameters.map((each) => each.gradients()));
    const wrong: string[] = [];
    const compare = async (name: string, want: readonly number[][]): Promise<void> => {
      for (const [i, got] of (await gradients()).entries())
        for (const [j, g] of got.entries())
          if (!near(g, want[i]?.[j] as number)) wrong.push(`${name}: ${g}, not ${want[i]?.[j]}`);
    };

    for (const normType of [1, 2, 2.5, Infinity]) {
      reset();
      const norm = normOf([...first, ...second], normType);
      const factor = 0.5 / (norm + 1e-6);
      const got = await clipGradNorm(optimizer, 0.5, { normType }).read();
      if (!near(got, norm)) wrong.push(`norm ${normType}: ${got}, not ${norm}`);
      await compare(
        `norm ${normType}`,
        [first, second].map((values) => values.map((g) => g * factor)),
      );
    }

    reset();
    const norms = clipGradNormPerGroup(optimizer, [1e9, 0.5]);
    const read = await Promise.all(norms.map((norm) => norm.read()));
    const factor = 0.5 / (normOf(second, 2) + 1e-6);
    if (!near(read[0] as number, normOf(first, 2)) || !near(read[1] as number, normOf(second, 2)))
      wrong.push(`norms of groups: ${read}`);
    await compare("per group", [first, second.map((g) => g * factor)]);

    reset();
    clipGradValue(optimizer, 0.25);
    const clamp = (g: number): number => Math.max(-0.25, Math.min(0.25, g));
    await compare("value", [first.map(clamp), second.map(clamp)]);
    expect(wrong).toEqual([]);
  },
);

test("what cannot be clipped by is refused", async () => {
  const [[, make]] = (await targets()) as [Awaited<ReturnType<typeof targets>>[number]];
  const target = await make();
  const parameters = new Parameters(target, first);
  parameters.setGradients(second);
  const optimizer = new SGD(target, parameters.flat, { lr: 0 });
  expect(() => clipGradValue(optimizer, -1)).toThrow(
    "clipValue is -1: it must be a positive number",
  );
  expect(() => clipGradNorm(optimizer, 1, { normType: Number.NaN })).toThrow("normType is NaN");
  expect(() => clipGradNormPerGroup(optimizer, [1, 2])).toThrow(
    "maxNorm has 2 numbers for 1 groups",
  );
});

test.each(await targets())("steps clip gradients whose squares overflow: %s", async (_, make) => {
  const target = await make();
  const parameters = new Parameters(target, new Array(total).fill(0));
  const gradients = new Array(total).fill(0).fill(1.5e38, 0, 2).fill(1e30, 2, 3);
  parameters.setGradients(gradients);
  new SGD(target, parameters.flat, { lr: 1, clipGradNorm: 1 }).step();
  const values = await parameters.values();
  expect(values.slice(0, 2).every((value) => near(value, -Math.SQRT1_2))).toBe(true);
  expect(near(values[2] as number, -1e30 / (1.5e38 * Math.SQRT2))).toBe(true);
});

test("parameters in place of an optimizer, and misspelt options, are refused in a line", async () => {
  const [, make] = (await targets())[0] as Awaited<ReturnType<typeof targets>>[number];
  const target = await make();
  const { flat } = new Parameters(target, first);
  const optimizer = new SGD(target, flat, { lr: 0 });
  expect(() => clipGradNorm([flat] as never, 1)).toThrow(
    "clipGradNorm takes an optimizer first, not parameters: pass the optimizer that steps them",
  );
  expect(() => clipGradNormPerGroup(undefined as never, 1)).toThrow("takes an optimizer first");
  expect(() => clipGradValue({} as never, 1)).toThrow("clipGradValue takes an optimizer first");
  expect(() => clipGradNorm(optimizer, 1, { norm_type: 1 } as never)).toThrow(
    'clipping has no option "norm_type": it has normType, errorIfNonfinite, gradScale',
  );
  expect(() => clipGradValue(optimizer, 1, { normType: 1 } as never)).toThrow("has no option");
  expect(() => clipGradNorm(optimizer, "1" as never)).toThrow(
    'maxNorm is "1": it must be a positive',
  );
  expect(() => clipGradNormPerGroup(optimizer, "1" as never)).toThrow('maxNorm is "1"');
  expect(() => clipGradNorm(optimizer, 1, { errorIfNonfinite: 1 } as never)).toThrow(
    "errorIfNonfinite is 1: it must be true or false",
  );
  expect(() => clipGradNorm(optimizer, 1, null as never)).toThrow("clipping takes options in an");
});
