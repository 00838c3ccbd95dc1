import { randomUUID } from "node:crypto";
import { linkSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { CheckpointError } from "./checkpoint/checkpoint-error.js";
import { parseJson } from "./checkpoint/manifest.js";
import { StorageError, storing } from "./errors.js";
import { type Locate, locateFrom } from "./files/located.js";

/** The process that holds a lock. */
interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Start time of the process, in units of the system; null where it is unknown. */
  readonly began: string | null;
  readonly since: string;
  readonly token: string;
}

/**
 * Prevents two runs from using one folder, by a file `run.lock` in it. The file of a process that has ended is taken over.
 */
export class RunLock {
  /** A line about a lock that was taken over, for users of the program. */
  readonly note: string | undefined;
  readonly #path: string;
  readonly #locate: Locate;
  readonly #token: string = randomUUID();
  readonly #release = (): void => this.release();
  #isHeld = true;

  /**
   * @param directory a folder that exists
   * @throws StorageError where another run holds it, or it cannot be written; CheckpointError where its lock file is
   * invalid
   */
  constructor(directory: string) {
    this.#locate = locateFrom(directory);
    this.#path = join(directory, "run.lock");
    const own = `${this.#path}.${this.#token}`;
    storing(this.#path, () =>
      writeFileSync(this.#locate(own), `${JSON.stringify(this.#holder())}\n`, { flag: "wx" }),
    );
    try {
      this.note = this.#take(directory, own);
    } finally {
      rmSync(this.#locate(own), { force: true });
    }
    // A second signal ends the process at once and must not leave a lock; only SIGKILL and power cuts do.
    process.once("exit", this.#release);
  }

  /** Unlocks the folder. */
  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    process.off("exit", this.#release);
    if (readHolder(this.#path, this.#locate)?.token === this.#token)
      rmSync(this.#locate(this.#path), { force: true });
  }

  #take(directory: string, own: string): string | undefined {
    let note: string | undefined;
    for (;;) {
      if (this.#link(own)) return note;
      const holder = readHolder(this.#path, this.#locate);
      if (holder === undefined) continue;
      const isOther = holder.host !== hostname();
      if (isOther || isAlive(holder))
        throw new StorageError(directory, {
          message: `process ${holder.pid}${isOther ? ` on ${holder.host}` : ""} has been writing to it since ${holder.since}: choose another folder, or end that run${isOther ? `; if it is gone, remove ${this.#path}` : ""}`,
        });
      if (this.#removeStale(holder))
        note = `${directory} was left locked by process ${holder.pid}, which is gone: taken over`;
    }
  }

  /** Creates the lock with its content atomically; returns false where one exists. */
  #link(own: string): boolean {
    return storing(this.#path, () => {
      try {
        linkSync(this.#locate(own), this.#locate(this.#path));
        return true;
      } catch (error) {
        if (isCode(error, "EEXIST")) return false;
        // On file systems without hard links, the content is written right after the file is created.
        if (!isCode(error, "EPERM", "ENOTSUP", "ENOSYS", "EOPNOTSUPP")) throw error;
      }
      try {
        writeFileSync(this.#locate(this.#path), readFileSync(this.#locate(own)), { flag: "wx" });
        return true;
      } catch (error) {
        if (isCode(error, "EEXIST")) return false;
        throw error;
      }
    });
  }

  /** One of several processes that find a stale lock removes it, and restores a lock that it removed by mistake. */
  #removeStale(stale: Holder): boolean {
    const aside = `${this.#path}.${this.#token}.stale`;
    try {
      renameSync(this.#locate(this.#path), this.#locate(aside));
    } catch (error) {
      if (isCode(error, "ENOENT")) return false;
      throw new StorageError(this.#path, error);
    }
    const isStale = readHolder(aside, this.#locate)?.token === stale.token;
    if (!isStale) linkSync(this.#locate(aside), this.#locate(this.#path));
    rmSync(this.#locate(aside), { force: true });
    return isStale;
  }

  #holder(): Holder {
    const { pid } = process;
    const since = new Date().toISOString();
    return { pid, host: hostname(), began: beginning(pid) ?? null, since, token: this.#token };
  }
}

/** No lock has more bytes. */
const lockLimit = 4096;

/** Undefined where there is no lock. */
function readHolder(path: string, locate: Locate): Holder | undefined {
  const place = locate(path);
  try {
    // Refuses pipes, on which reads would wait, and links, which may be dangling.
    const stats = lstatSync(place);
    const holder =
      stats.isFile() && stats.size <= lockLimit
        ? parseJson(readFileSync(place, "utf8"))
        : undefined;
    if (isHolder(holder)) return holder;
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw new StorageError(path, error, "read");
  }
  throw new CheckpointError(
    "malformed",
    path,
    "is a lock that does not say whose: remove it if no run writes to the folder",
  );
}

function isHolder(value: unknown): value is Holder {
  const { pid, host, began, since, token } = (value ?? {}) as Partial<Holder>;
  const isProcess = Number.isSafeInteger(pid) && (pid as number) > 0 && (pid as number) < 2 ** 31;
  return (
    isProcess &&
    [host, since, token].every((text) => typeof text === "string" && !/[\r\n]/.test(text)) &&
    (began === null || typeof began === "string")
  );
}

function isAlive({ pid, began }: Holder): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (isCode(error, "ESRCH")) return false;
    // Deno without --allow-run does not say. On Linux /proc does.
    if (!isCode(error, "EPERM") && beginning(process.pid) && !beginning(pid)) return false;
  }
  // Another process may have the same id by now.
  const now = beginning(pid);
  return began === null || now === undefined || now === began;
}

/** Field 22 of /proc/PID/stat (proc_pid_stat(5)): clock ticks from the start of the system to that of the process. */
function beginning(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field is the program's name in parentheses, and may contain anything.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

const isCode = (error: unknown, ...codes: readonly string[]): boolean =>
  codes.includes((error as NodeJS.ErrnoException).code ?? "");
