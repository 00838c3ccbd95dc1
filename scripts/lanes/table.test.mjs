import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { fullBrowserLanes, lanes, leakLanes } from "./table.mjs";
import { testFiles } from "./test-files.mjs";

const ofLanes = /\.(lane|browser)\.test\.ts$/;
const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

it("has each test that is written for lanes or browsers", () => {
  const folders = ["packages", "apps"].flatMap((kind) =>
    readdirSync(join(root, kind)).map((name) => `${kind}/${name}`),
  );
  const written = folders.flatMap((name) => {
    const folder = join(root, name, "test");
    const files = existsSync(folder) ? readdirSync(folder, { recursive: true }) : [];
    return files.filter((file) => ofLanes.test(file)).map((file) => `${name}/test/${file}`);
  });
  const named = [...lanes, ...fullBrowserLanes, ...leakLanes].flatMap(({ tests }) =>
    Object.entries(tests).flatMap(([name, wanted]) =>
      testFiles(join(root, name), wanted)
        .filter((file) => ofLanes.test(file))
        .map((file) => `${name}/${file}`),
    ),
  );
  expect([...new Set(named)].sort()).toEqual(written.sort());
});
