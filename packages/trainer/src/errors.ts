const storageBrand = Symbol.for("@halfstep/StorageError");

/** A run folder, a log or a checkpoint cannot be written, or its folder not be read. The message names the path and the cause. */
export class StorageError extends Error {
  constructor(path: string, cause: unknown, what: "written" | "read" = "written") {
    const { code, message } = cause as NodeJS.ErrnoException;
    super(`${path} cannot be ${what} (${reasons[code ?? ""] ?? message})`, { cause });
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
  EFBIG: "the file grows beyond what the system allows",
  EIO: "the disk has failed",
  ENOTDIR: "a part of the path is a file",
  EEXIST: "a file of that name is in the way",
  EISDIR: "a folder of that name is in the way",
};

/**
 * Does something that writes, whose errors of the system become a StorageError that names `path`.
 * @throws StorageError
 */
export function storing<T>(path: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    throw asStorageError(path, error);
  }
}

/** As {@link storing}, of something that takes time. */
export async function storingAsync<T>(path: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    throw asStorageError(path, error);
  }
}

/** Errors that are not of the system, such as those of a tensor that cannot be stored, stay what they are. */
const asStorageError = (path: string, error: unknown): unknown =>
  error instanceof Error &&
  "code" in error &&
  !(error instanceof StorageError) &&
  "syscall" in error
    ? new StorageError(path, error)
    : error;
