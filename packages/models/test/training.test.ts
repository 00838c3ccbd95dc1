import { cpuRuntime } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { examples } from "./catalogue.js";
import { losses, precisions } from "./descent.js";

describe.each(examples)("$name", (example) => {
  test.each(precisions)("a few steps lower the loss in %s", async (precision) => {
    const found = await losses(cpuRuntime(), example, precision, 6);
    expect(found.every(Number.isFinite)).toBe(true);
    expect(found.at(-1)).toBeLessThan(0.9 * (found[0] as number));
  });
});
