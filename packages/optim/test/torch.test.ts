import { readFileSync } from "node:fs";
import { cpuTarget } from "@halfstep/kernels";
import { describe, expect, it } from "vitest";
import { LARC, type LARCOptions, type SGD } from "../src/index.js";
import { type AnyOptimizer, classes } from "./catalogue.js";
import { type AnyTarget, Parameters, type Shapes, split } from "./targets.js";

interface Case {
  readonly optimizer: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly larc?: LARCOptions;
  /** Default 3. */
  readonly steps?: number;
  /** Gradients have runs of signs, and zeros. */
  readonly planted?: boolean;
  readonly shapes: Shapes;
  readonly values: readonly number[];
  /** Other states than moments. */
  readonly state?: Readonly<Record<string, readonly number[]>>;
}

/** See golden/steps.py. */
const { cases } = JSON.parse(
  readFileSync(new URL("golden/steps.json", import.meta.url), "utf8"),
) as { readonly cases: readonly Case[] };

/** The recipe's numbers. */
const numbers = (count: number, a: number, b: number): number[] =>
  Array.from({ length: count }, (_, i) => Math.round(Math.sin(a * i + b) * 700) / 1024);

const tensors = (shapes: Shapes, a: number, b: number): number[] =>
  Object.values(shapes).flatMap((shape, i) =>
    numbers(
      shape.reduce((n, size) => n * size, 1),
      a,
      b + i,
    ),
  );

/** Those of a step, by the recipe. */
function gradientsOf(shapes: Shapes, step: number, planted: boolean): number[] {
  if (!planted) return tensors(shapes, 1.3, 10 * step);
  const gradients = tensors(shapes, 1.3, 0.9 * step);
  return split(gradients, shapes).flatMap((own) =>
    own.map((g, i) => ((i + step) % 5 === 0 || (i % 3 === 0 && step >= 8 && step < 11) ? 0 : g)),
  );
}

describe("steps are those of torch and apex", () => {
  it.each(
    cases.map((c) => [`${c.optimizer} ${JSON.stringify(c.options)}`, c.steps ?? 3, c] as const),
  )(
    "%s, %i",
    async (_, steps, {
      optimizer: name,
      options,
      larc,
      planted = false,
      shapes,
      values,
      state = {},
    }) => {
      const target = cpuTarget() as AnyTarget;
      const parameters = new Parameters(target, tensors(shapes, 0.7, 1), "float32", shapes);
      const Class = classes[name.replace("LARC ", "") as "SGD"] as typeof SGD;
      const inner = new Class(target, parameters.flat, options);
      const optimizer = (larc ? new LARC(inner, larc) : inner) as AnyOptimizer;
      for (let step = 0; step < steps; step++) {
        parameters.setGradients(gradientsOf(shapes, step, planted));
        optimizer.step();
      }
      const got = await parameters.values();
      const worst = Math.max(...got.map((v, i) => Math.abs(v - (values[i] as number))));
      expect(split(got, shapes)).toHaveLength(Object.keys(shapes).length);
      expect(got).toHaveLength(values.length);
      expect(worst).toBeLessThan(2e-6);
      const [saved] = (await optimizer.stateDict()).groups;
      for (const [part, wanted] of Object.entries(state)) {
        const found = Object.values(saved?.state ?? {}).flatMap((own) => [...(own[part] ?? [])]);
        expect(found).toHaveLength(wanted.length);
        const off = found.map((v, i) => Math.abs(v - (wanted[i] as number)));
        expect(Math.max(...off)).toBeLessThan(2e-6);
      }
    },
  );
});
