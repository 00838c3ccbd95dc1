import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { lanes } from "../lanes/table.mjs";

const packages = join(import.meta.dirname, "../../packages");

/** The sources of a package, tests apart. */
const sourcesOf = (name) =>
  readdirSync(join(packages, name, "src"), { recursive: true })
    .filter((path) => /(?<!\.test)\.ts$/.test(path))
    .map((path) => join(packages, name, "src", path));

it("packages whose tests run on subgroups of four lanes alone do not know subgroups", () => {
  const narrow = readdirSync(packages).filter((name) =>
    readFileSync(join(packages, name, "vitest.config.ts"), "utf8").includes("manyNarrowPrograms"),
  );
  expect(narrow).toEqual(["kernels", "models", "nn", "optim", "tensor"]);
  const { tests } = lanes.find(({ name }) => name === "eight-lanes");
  const knowing = narrow
    .filter((name) => !tests[`packages/${name}`]?.suites)
    .flatMap(sourcesOf)
    .filter((path) => /subgroup/i.test(readFileSync(path, "utf8")));
  expect(knowing).toEqual([]);
});
