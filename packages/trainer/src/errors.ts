const storageBrand = Symbol.for("@halfstep/StorageError");

/** The run folder cannot be made or written. The message names the path and the cause. */
export class StorageError extends Error {
  constructor(path: string, cause: unknown) {
    const { code, message } = cause as NodeJS.ErrnoException;
    super(`${path} cannot be written (${reasons[code ?? ""] ?? message})`, { cause });
    this.name = "StorageError";
    Object.defineProperty(this, storageBrand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && storageBrand in value;
  }
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "no space left on the disk",
  EDQUOT: "the disk quota is used up",
  ENOTDIR: "a part of the path is a file",
  EEXIST: "a file of that name is in the way",
  EISDIR: "a folder of that name is in the way",
};
