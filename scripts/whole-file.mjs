// What scripts and benchmarks write that is not part of a test's own folder: they run where no package can be imported yet, or below the
// floor of the one that has `writeWholeFile` (decision 84).
import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";

/** Writes a file that appears whole or not at all: beside its place, flushed, then renamed. @throws the system's error */
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
    // What was begun takes up room that a full disk has not.
    rmSync(partial, { force: true });
    throw error;
  }
}
