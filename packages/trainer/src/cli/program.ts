import { isOfSystem, StorageError, systemFault } from "../errors.js";
import { closedPipeCode, isClosedPipe, isStopAwaited } from "../stop-signals.js";
import { rankPrefix } from "./job.js";

/** The exit codes of programs that {@link program} runs, for their help. */
export const exitCodes =
  "Exit codes: 0 done, 1 the run failed or its loss is not finite, 2 wrong flags, unreadable data or checkpoints, 3 no adapter or device lost, 4 storage, 129/130/143 stopped by a signal, 141 by a closed pipe.";

const brand = Symbol.for("@halfstep/UsageError");

/** Flags conflict with each other or with their data. The message says what to give instead. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UsageError";
    Object.defineProperty(this, brand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && brand in value;
  }
}

/** Options of a program. */
export interface ProgramOptions {
  /** Default: those of the process. */
  readonly args?: readonly string[];
  /** Writes the line of an error. Default: to stderr. */
  readonly say?: (line: string) => void;
}

/**
 * Runs a program, and sets the exit code of the process: what `main` resolves to, or the one that {@link exitCodeOf} gives
 * for what it throws. It shows the first line of an error's message, and the stack where `HALFSTEP_DEBUG` is set.
 *
 * @example
 * await program(async (args) => {
 *   const options = parse(args);
 *   …
 *   return stop.exitCode() ?? 0;
 * });
 */
export async function program(
  main: (args: readonly string[]) => Promise<number>,
  {
    args = process.argv.slice(2),
    say = (line) => process.stderr.write(`${line}\n`),
  }: ProgramOptions = {},
): Promise<void> {
  // Unhandled errors end the process with one line, too.
  const onStray = (error: unknown): never => process.exit(report(error, say));
  const strays = ["uncaughtException", "unhandledRejection"] as const;
  // Bun does not tell listeners of the first kind of rejections.
  for (const stray of strays) process.on(stray, onStray);
  // If the reader of the output is gone, the program ends silently after saving. The listener stays, because the last writes
  // fail later.
  const onOutputError = (name: string, error: NodeJS.ErrnoException): void => {
    // Thrown here, it would end the process with its stack where `main` has ended.
    if (!isClosedPipe(error)) onStray(new StorageError(name, error));
    if (!isStopAwaited()) process.exit(closedPipeCode);
  };
  for (const name of ["stdout", "stderr"] as const)
    process[name].on("error", (error) => onOutputError(name, error));
  try {
    process.exitCode = await main(args);
  } catch (error) {
    process.exitCode = report(error, say);
  } finally {
    for (const stray of strays) process.off(stray, onStray);
  }
}

/** The exit code of a program that ends by an error: see {@link exitCodes}. */
export function exitCodeOf(error: unknown): number {
  if (isOfCommander(error)) return error.exitCode === 0 ? 0 : 2;
  if (typeof error !== "object" || error === null) return 1;
  const known = Object.entries(codes).find(([name]) => Symbol.for(`@halfstep/${name}`) in error);
  if (known) return known[1];
  const { code, syscall } = error as NodeJS.ErrnoException;
  return (syscall !== undefined && systemCodes[code ?? ""]) || 1;
}

// Exit codes by the brands of errors: errors may come from other copies of the packages, or from packages that are not
// installed here.
const codes: Readonly<Record<string, number>> = {
  UsageError: 2,
  DataError: 2,
  CheckpointError: 2,
  ConfigError: 2,
  StateDictError: 2,
  SafetensorsError: 2,
  TorchFileError: 2,
  MissingPackageError: 2,
  NoAdapterError: 3,
  DeviceLostError: 3,
  StorageError: 4,
};

/** Exit codes of untyped system errors: missing input, and full disks. */
const systemCodes: Readonly<Record<string, number>> = {
  ENOENT: 2,
  ENOTDIR: 2,
  EISDIR: 2,
  EACCES: 2,
  ENOSPC: 4,
  EDQUOT: 4,
  EROFS: 4,
  EIO: 4,
};

function report(error: unknown, say: (line: string) => void): number {
  const exitCode = exitCodeOf(error);
  if (isOfCommander(error)) {
    // Requested help was already shown. The second line of an error may have a suggestion.
    if (exitCode !== 0)
      say(
        error.code === "commander.help"
          ? "error: no command was given: --help lists them"
          : `${rankPrefix}${error.message.trim().replaceAll("\n", " ")}`,
      );
    return exitCode;
  }
  say(`${rankPrefix}error: ${messageOf(error).split("\n", 1)[0]}`);
  if (process.env.HALFSTEP_DEBUG && error instanceof Error) say(error.stack ?? "");
  return exitCode;
}

function messageOf(error: unknown): string {
  const fault = isOfSystem(error) && error.path !== undefined ? systemFault(error) : undefined;
  if (fault) return `${(error as NodeJS.ErrnoException).path}: ${fault.fact}: ${fault.remedy}`;
  return error instanceof Error ? error.message : String(error);
}

interface ErrorOfCommander extends Error {
  readonly code: string;
  readonly exitCode: number;
}

const isOfCommander = (error: unknown): error is ErrorOfCommander =>
  error instanceof Error &&
  "code" in error &&
  typeof error.code === "string" &&
  error.code.startsWith("commander.");
