import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { lanes } from "./table.mjs";
import { testFiles } from "./test-files.mjs";

const packages = join(dirname(fileURLToPath(import.meta.url)), "../../packages");

it("has each test that is written for lanes", () => {
  const written = readdirSync(packages).flatMap((name) => {
    const folder = join(packages, name, "test");
    const files = existsSync(folder) ? readdirSync(folder) : [];
    return files
      .filter((file) => file.endsWith(".lane.test.ts"))
      .map((file) => `${name}/test/${file}`);
  });
  const named = lanes.flatMap(({ tests }) =>
    Object.entries(tests).flatMap(([name, wanted]) =>
      testFiles(join(packages, name), wanted)
        .filter((file) => file.endsWith(".lane.test.ts"))
        .map((file) => `${name}/${file}`),
    ),
  );
  expect([...new Set(named)].sort()).toEqual(written.sort());
});
