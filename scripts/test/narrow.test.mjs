import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const packages = join(import.meta.dirname, "../../packages");

/** The sources of a package, tests apart. */
const sourcesOf = (name) =>
  readdirSync(join(packages, name, "src"), { recursive: true })
    .filter((path) => /(?<!\.test)\.ts$/.test(path))
    .map((path) => join(packages, name, "src", path));

it("packages whose tests run on subgroups of four lanes do not know subgroups", () => {
  const narrow = readdirSync(packages).filter((name) =>
    readFileSync(join(packages, name, "vitest.config.ts"), "utf8").includes("manyNarrowPrograms"),
  );
  expect(narrow).toEqual(["nn", "optim", "tensor"]);
  const knowing = narrow
    .flatMap(sourcesOf)
    .filter((path) => /subgroup/i.test(readFileSync(path, "utf8")));
  expect(knowing).toEqual([]);
});
