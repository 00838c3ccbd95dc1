// `npx vitest` at the top of the repository, as editors start it, finds the tests of each package and app.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

test("the config at the top lists tests of every package and app", () => {
  const printed = execFileSync("npx", ["vitest", "list", "--filesOnly", "--json"], {
    cwd: root,
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  const folders = JSON.parse(printed).map(({ file }) =>
    relative(root, file).split(/[\\/]/).slice(0, 2).join("/"),
  );
  const expected = ["packages", "apps"].flatMap((group) =>
    readdirSync(join(root, group))
      .filter((name) => existsSync(join(root, group, name, "package.json")))
      .map((name) => `${group}/${name}`),
  );
  expect([...new Set(folders)].sort()).toEqual(expected.sort());
});
