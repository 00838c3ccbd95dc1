// Bundlers warn of modules that import each other, and which of them runs first is chance. Types alone vanish when packages are built, so
// this looks at built files. Needs a build.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { publicPackages } from "./packages.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The files that a built module imports at once, but for other packages. */
const importsOf = (file) =>
  Array.from(
    readFileSync(file, "utf8").matchAll(/^(?:import|export)\b[^;]*?["'](\.[^"']+)["'];/gm),
    ([, path]) => join(dirname(file), path),
  );

/** The first circle of modules, as a list that ends where it begins; undefined where there is none. */
function circleIn(files) {
  const done = new Set();
  const walk = (file, way) => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const next of importsOf(file)) {
      const found = walk(next, [...way, file]);
      if (found) return found;
    }
    done.add(file);
    return undefined;
  };
  for (const file of files) {
    const found = walk(file, []);
    if (found) return found;
  }
  return undefined;
}

test.each(publicPackages(root).map(({ name, directory }) => [name, join(directory, "dist")]))(
  "%s has no circle of modules",
  (_, dist) => {
    const files = readdirSync(dist, { recursive: true })
      .filter((file) => file.endsWith(".js"))
      .map((file) => join(dist, file));
    expect(files.length).toBeGreaterThan(0);
    expect(circleIn(files)?.map((file) => relative(dist, file))).toBeUndefined();
  },
);
