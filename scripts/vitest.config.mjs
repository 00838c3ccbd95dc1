import { unit } from "@halfstep/vitest";

export default unit({
  include: ["**/*.test.mjs"],
  root: import.meta.dirname,
  typecheck: { enabled: false },
});
