import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a folder and its parents. Node 20's recursive mkdir never returns below /proc, where existing folders refuse new
 * ones with ENOENT.
 */
export const makeDirectory = (directory: string): void => {
  const parent = dirname(directory);
  if (!existsSync(parent)) makeDirectory(parent);
  try {
    mkdirSync(directory);
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === "EEXIST";
    if (!isThere || !statSync(directory).isDirectory()) throw error;
  }
};
