import { expect, test } from "vitest";
import { drawLaunches, drawMemory } from "./plan-pictures.js";

// `npx vitest run test/plan-pictures.test.ts -u` draws them again.
test.each([
  ["launches", drawLaunches],
  ["memory", drawMemory],
])("docs/guide/pictures/%s.svg shows the plan", async (name, draw) => {
  await expect(draw()).toMatchFileSnapshot(`../../../docs/guide/pictures/${name}.svg`);
});
