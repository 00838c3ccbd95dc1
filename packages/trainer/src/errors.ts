const storageBrand = Symbol.for("@halfstep/StorageError");

/**
 * A run folder, a log or a checkpoint cannot be written, or its folder cannot be read. The message names the path, the cause
 * and the remedy.
 */
export class StorageError extends Error {
  constructor(path: string, cause: unknown, what: "written" | "read" = "written") {
    const known = systemFault(cause);
    const reason = known?.fact ?? (cause as Error).message;
    super(`${path} cannot be ${what} (${reason})${known ? `: ${known.remedy}` : ""}`, { cause });
    this.name = "StorageError";
    Object.defineProperty(this, storageBrand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && storageBrand in value;
  }
}

const divergenceBrand = Symbol.for("@halfstep/DivergenceError");

/** A step with a loss or gradients that are not finite was applied, so the parameters are lost. No checkpoint of it is saved. */
export class DivergenceError extends Error {
  /** Counts from 1. */
  readonly step: number;

  /** @param parameter one that is NaN after the step, where the loss was not */
  constructor(step: number, precision: string, parameter?: string) {
    const fact =
      parameter === undefined
        ? `the loss of step ${step} (${precision}) is not finite, and the step was applied`
        : `${parameter} is NaN after step ${step} (${precision}), and no checkpoint of it is saved`;
    super(
      `${fact}: take a lower learning rate or clip gradients, and go on from the checkpoint before if there is one`,
    );
    this.name = "DivergenceError";
    this.step = step;
    Object.defineProperty(this, divergenceBrand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && divergenceBrand in value;
  }
}

/** The meaning of a system error, and its remedy. */
export interface SystemFault {
  readonly fact: string;
  readonly remedy: string;
}

const denied: SystemFault = {
  fact: "permission denied",
  remedy: "change its permissions, or choose another place",
};
const full = "make room, or choose a place on another disk";
const inTheWay = "remove it, or choose another place";

const faults: Readonly<Record<string, SystemFault>> = {
  ENOENT: { fact: "there is no such file or folder", remedy: "check the path" },
  EACCES: denied,
  EPERM: denied,
  EROFS: { fact: "the file system is read-only", remedy: "choose another place" },
  ENOSPC: { fact: "no space left on the disk", remedy: full },
  EDQUOT: { fact: "the disk quota is used up", remedy: full },
  EFBIG: {
    fact: "the file grows beyond what the system allows",
    remedy: "raise the limit (ulimit -f), or choose a place on another disk",
  },
  EIO: { fact: "the disk has failed", remedy: "choose a place on another disk" },
  ENOTDIR: { fact: "a part of the path is a file", remedy: "check the path" },
  EEXIST: { fact: "a file of that name is in the way", remedy: inTheWay },
  EISDIR: { fact: "a folder of that name is in the way", remedy: inTheWay },
  ENXIO: { fact: "a pipe of that name is in the way", remedy: inTheWay },
  EBUSY: { fact: "it is in use, or a disk of its own", remedy: "choose another place" },
  ENAMETOOLONG: { fact: "its name is too long", remedy: "choose a shorter one" },
  EMFILE: { fact: "too many files are open", remedy: "raise the limit (ulimit -n)" },
  ENFILE: { fact: "too many files are open", remedy: "end other programs" },
  // Of browsers.
  SecurityError: {
    fact: "the browser forbids it, as in private windows",
    remedy: "use another store: indexedDbCheckpoints() or memoryCheckpoints()",
  },
  QuotaExceededError: {
    fact: "the browser gives this site no more room",
    remedy: "keep fewer checkpoints, or clear the site's data",
  },
};

/** The fault of a known system error; undefined for others. */
export const systemFault = (error: unknown): SystemFault | undefined => {
  const { code, name } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  return faults[code ?? ""] ?? faults[name ?? ""];
};

/**
 * Runs a function that writes; system errors become a StorageError that names `path`.
 * @throws StorageError
 */
export function storing<T>(path: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    throw asStorageError(path, error);
  }
}

/** As {@link storing}, for an asynchronous function. */
export async function storingAsync<T>(path: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    throw asStorageError(path, error);
  }
}

/** Other errors, such as those of a tensor that cannot be stored, are not changed. */
const asStorageError = (path: string, error: unknown): unknown =>
  isOfSystem(error) && !(error instanceof StorageError) ? new StorageError(path, error) : error;

/** Whether an error came from a system call, such as Node's error for a missing file. */
export const isOfSystem = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && "code" in error && "syscall" in error;
