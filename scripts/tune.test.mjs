import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

it("tune says that it takes no arguments", () => {
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  const { status, stdout, stderr } = spawnSync("npm", ["run", "-s", "tune", "--", "--quick"], {
    cwd,
    encoding: "utf8",
  });
  // npm itself may warn before.
  const line = stderr.trimEnd().split("\n").at(-1);
  expect([status, line]).toEqual([2, "--quick: npm run tune takes no arguments"]);
  expect(stdout).toBe("");
});
