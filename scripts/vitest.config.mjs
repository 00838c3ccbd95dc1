import { unit } from "@halfstep/vitest";
import { configDefaults } from "vitest/config";

export default unit({
  include: ["**/*.test.mjs"],
  exclude: [...configDefaults.exclude, "**/*.{docs,gate}.test.mjs"],
  dir: import.meta.dirname,
  typecheck: { enabled: false },
});
