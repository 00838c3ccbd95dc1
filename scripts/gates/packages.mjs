import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The packages of this repository that are published.
 * @param {string} root
 * @returns {{ name: string, directory: string, manifest: Record<string, any> }[]}
 */
export const publicPackages = (root) =>
  readdirSync(join(root, "packages"))
    .map((folder) => join(root, "packages", folder))
    .filter((directory) => existsSync(join(directory, "package.json")))
    .map((directory) => {
      const manifest = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
      return { name: manifest.name, directory, manifest };
    })
    .filter(({ manifest }) => !manifest.private);

/** These packages and all packages of `all` that they depend on, directly or not. */
export const closure = (names, all) => {
  const found = new Set();
  const visit = (name) => {
    const pkg = all.find((candidate) => candidate.name === name);
    if (found.has(name) || pkg === undefined) return;
    found.add(name);
    for (const dependency of Object.keys(pkg.manifest.dependencies ?? {})) visit(dependency);
  };
  for (const name of names) visit(name);
  return [...found];
};
