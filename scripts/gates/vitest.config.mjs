import { join } from "node:path";
import { unit } from "@halfstep/vitest";

/** Tests of scripts that bundle programs and start many processes: the gate `bundles` runs them, and `npm test` does not. */
export default unit({
  include: ["**/*.gate.test.mjs"],
  dir: join(import.meta.dirname, ".."),
  typecheck: { enabled: false },
});
