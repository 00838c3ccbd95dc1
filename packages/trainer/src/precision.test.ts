import { expect, it } from "vitest";
import { type LossScaleFlags, recipeFor, scalerOptionsFor } from "./precision.js";

it("flags override how a recipe scales the loss, where that makes sense", () => {
  const cases: readonly (readonly [string, LossScaleFlags, object])[] = [
    ["float32", {}, { enabled: false }],
    ["float32", { staticLossScale: 128 }, { enabled: false }],
    ["bfloat16", { staticLossScale: 128, initScale: 4 }, { enabled: false }],
    ["float16", {}, {}],
    ["float16", { initScale: 4 }, { initScale: 4 }],
    ["float16", { staticLossScale: 8, initScale: 4 }, { preset: "static", initScale: 8 }],
    ["O2", { initScale: 4 }, { initScale: 4 }],
    // Steps that overflow are skipped at a scale of 1, too.
    ["O3", {}, { preset: "static", initScale: 1 }],
    ["O3", { initScale: 4 }, { preset: "static", initScale: 1 }],
    ["O3", { staticLossScale: 1 }, { preset: "static", initScale: 1 }],
    ["O3", { staticLossScale: 128 }, { preset: "static", initScale: 128 }],
  ];
  expect(cases.map(([name, flags]) => scalerOptionsFor(recipeFor(name), flags))).toEqual(
    cases.map(([, , options]) => options),
  );
});
