import { isAbsolute, join } from "node:path";
import type { FileSystem } from "./file-system.js";

/** Gives the place of a path on the disk. Messages have the path itself, as users wrote it. */
export type Locate = (path: string) => string;

/** Of a path and those below it: the working directory of this moment counts, also where the process changes it later. */
export function locateFrom(path: string): Locate {
  if (isAbsolute(path)) return (each) => each;
  const here = process.cwd();
  return (each) => (isAbsolute(each) ? each : join(here, each));
}

/** The same functions, which find paths by `locate`. */
export const locatedFileSystem = (fs: FileSystem, locate: Locate): FileSystem => ({
  open: (path, ...rest) => fs.open(locate(path as string), ...rest),
  mkdir: ((path: string, options?: object) =>
    fs.mkdir(locate(path), options)) as FileSystem["mkdir"],
  rename: (from, to) => fs.rename(locate(from as string), locate(to as string)),
  rm: (path, options) => fs.rm(locate(path as string), options),
  readdir: ((path: string, options?: object) =>
    fs.readdir(locate(path), options as never)) as unknown as FileSystem["readdir"],
});
