import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { lanes } from "./table.mjs";
import { testFiles } from "./test-files.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

it("has each test that is written for lanes", () => {
  const folders = ["packages", "apps"].flatMap((kind) =>
    readdirSync(join(root, kind)).map((name) => `${kind}/${name}`),
  );
  const written = folders.flatMap((name) => {
    const folder = join(root, name, "test");
    const files = existsSync(folder) ? readdirSync(folder) : [];
    return files
      .filter((file) => file.endsWith(".lane.test.ts"))
      .map((file) => `${name}/test/${file}`);
  });
  const named = lanes.flatMap(({ tests }) =>
    Object.entries(tests).flatMap(([name, wanted]) =>
      testFiles(join(root, name), wanted)
        .filter((file) => file.endsWith(".lane.test.ts"))
        .map((file) => `${name}/${file}`),
    ),
  );
  expect([...new Set(named)].sort()).toEqual(written.sort());
});
