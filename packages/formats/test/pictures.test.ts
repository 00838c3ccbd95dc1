import { expect, test } from "vitest";
import { drawLayouts, drawLostUpdate, drawRanges, drawSpacing } from "./pictures.js";

// `npx vitest run test/pictures.test.ts --update` draws them again.
test.each([
  ["layouts", drawLayouts],
  ["ranges", drawRanges],
  ["spacing", drawSpacing],
  ["lost-update", drawLostUpdate],
])("docs/%s.svg shows the definitions", async (name, draw) => {
  await expect(draw()).toMatchFileSnapshot(`../docs/${name}.svg`);
});
