// Writes the files of scripts and benchmarks, except those in a test's own folder. Scripts may run before any package can be imported,
// or on a Node older than the package with `writeWholeFile` supports (decision 84).
import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";

/**
 * Writes a file that appears whole or not at all: to a temporary file in the same folder, which is flushed and then renamed.
 * @throws the system's error
 */
export function writeWhole(path, content) {
  const partial = `${path}.${randomBytes(4).toString("hex")}.partial`;
  try {
    const file = openSync(partial, "wx");
    try {
      writeFileSync(file, content);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(partial, path);
  } catch (error) {
    // The partial file would use space that a full disk does not have.
    rmSync(partial, { force: true });
    throw error;
  }
}
