import { unit } from "@halfstep/vitest";

/** Programs of the documentation's pages, which `npm run docs:test` compiles and runs. */
export default unit({
  include: ["**/*.docs.test.mjs"],
  dir: import.meta.dirname,
  typecheck: { enabled: false },
});
