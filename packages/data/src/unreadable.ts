import { DataError } from "./error.js";

/**
 * The DataError of a file or folder that the system could not read, with the problem in plain words and the remedy.
 *
 * @example
 * const bytes = await readFile(path).catch((error) => {
 *   throw unreadable(path, error);
 * });
 */
export function unreadable(path: string, error: unknown): DataError {
  const { code = "", message } = error as NodeJS.ErrnoException;
  return new DataError(path, reasons[code] ?? `cannot be read (${message})`);
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "is not there: check the path",
  ENOTDIR: "cannot be read: a part of the path is a file",
  EISDIR: "is a folder: name a file",
  EACCES: "cannot be read: permission denied",
  EPERM: "cannot be read: permission denied",
  EMFILE: "cannot be read: too many files are open (ulimit -n)",
  ELOOP: "cannot be read: its links lead in a circle, remove them",
  ENAMETOOLONG: "cannot be read: its name is too long",
  ENXIO: "is a socket: name a file",
  EIO: "cannot be read: the disk has failed",
};
