import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const hashOf = (path) => createHash("sha256").update(readFileSync(path)).digest("hex");

/** The hash of each file of an output, by its name in it, without what a killed process has left beside it. */
export function contentOf(path) {
  try {
    return { "": hashOf(path) };
  } catch (error) {
    if (error.code === "ENOENT") return {};
    if (error.code !== "EISDIR") throw error;
  }
  const names = readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((name) => !name.includes(".partial"));
  return Object.fromEntries(names.map((name) => [name.slice(path.length), hashOf(name)]));
}
