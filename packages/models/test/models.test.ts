import { recipeOf, withRecipe } from "@halfstep/autocast";
import { applyRecipe, explainOps } from "@halfstep/nn";
import { cpuRuntime, noGrad } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { examples } from "./catalogue.js";

describe.each(examples)("$name", ({ make }) => {
  test("a seed gives the same parameters again, another seed does not", async () => {
    const bits = async (seed: number): Promise<string> => {
      const state = await make(cpuRuntime(), seed).model.stateDict();
      return Object.entries(state)
        .map(([name, { shape, data }]) => `${name} [${shape}] ${data.join()}`)
        .join("\n");
    };
    const first = await bits(7);
    expect(await bits(7)).toBe(first);
    expect(await bits(8)).not.toBe(first);
  });

  test("a gradient flows to every parameter", async () => {
    const { model, loss } = make(cpuRuntime(), 3);
    loss().backward();
    const without: string[] = [];
    for (const [name, { grad }] of model.namedParameters()) {
      const values = grad ? [...(await grad.toArray())] : [];
      const flows = values.every(Number.isFinite) && values.some((value) => value !== 0);
      if (!flows) without.push(name);
    }
    expect(without).toEqual([]);
  });

  test("explain runs it by its example inputs, and O1 lowers its products", () => {
    const { model } = make(cpuRuntime(), 1);
    const products = explainOps(recipeOf("O1"), model).filter(({ op }) =>
      ["linear", "conv2d", "convTranspose2d", "scaledDotProductAttention"].includes(op),
    );
    expect(products.length).toBeGreaterThan(5);
    expect(products.filter(({ runsIn, path }) => runsIn !== "float16" || path === "")).toEqual([]);
  });

  test("every recipe gives the loss of float32, up to 16 bits", async () => {
    const losses: number[] = [];
    for (const level of ["O0", "O1", "O2", "O3"]) {
      const runtime = cpuRuntime();
      const { model, loss } = make(runtime, 3);
      const recipe = recipeOf(level);
      applyRecipe(model.eval(), recipe);
      losses.push(await noGrad(() => withRecipe(recipe, () => loss())).item());
    }
    const [exact, ...lowered] = losses as [number, number, number, number];
    expect(exact).toBeGreaterThan(0.5);
    for (const loss of lowered) {
      expect(loss).not.toBe(exact);
      expect(Math.abs(loss / exact - 1)).toBeLessThan(0.02);
    }
  });

  test("half() changes its results by little, and what it keeps stays float32", async () => {
    const runtime = cpuRuntime();
    const [wide, narrow] = [make(runtime, 3), make(runtime, 3)];
    for (const { model } of [wide, narrow]) model.eval();
    const kept = new Set(
      [...narrow.model.half().namedParameters()]
        .filter(([, { dtype }]) => dtype === "float32")
        .map(([name]) => name.split(".").at(-2)?.replace(/\d+/, "") ?? ""),
    );
    expect(kept.size).toBeLessThan(4);
    const results = [noGrad(() => wide.output()), noGrad(() => narrow.output("float16"))];
    const [exact, rounded] = (await Promise.all(results.map((y) => y.toArray()))) as never as [
      Float32Array,
      Float32Array,
    ];
    const scale = Math.max(...exact.map(Math.abs));
    const worst = Math.max(...exact.map((value, i) => Math.abs(value - (rounded[i] as number))));
    expect(worst / scale).toBeLessThan(0.02);
    expect(worst).toBeGreaterThan(0);
  });
});
