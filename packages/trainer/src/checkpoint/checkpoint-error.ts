// `instanceof` looks for this brand, so that an error thrown by another copy of the package is recognised too.
const brand = Symbol.for("@halfstep/CheckpointError");

/** The problem of a checkpoint, for programs; the message describes it for people. */
export type CheckpointProblem =
  /** The folder does not exist, or has no whole checkpoint. */
  | "not-found"
  /** A file is missing, or is not a regular file. */
  | "missing-file"
  /** The manifest does not list a file of the folder. */
  | "extra-file"
  /** The length of a file differs from the manifest. */
  | "length"
  /** The bytes of a file differ from those that were saved. */
  | "hash"
  /** `manifest.json` was changed or is malformed. */
  | "manifest"
  /** A later version of this package made it. */
  | "version"
  /** `state.json` or a safetensors file is malformed, though its hash is right. */
  | "malformed"
  /** A file cannot be read. */
  | "unreadable"
  /** The checkpoint is whole, but belongs to another model, optimizer, recipe or log. */
  | "misfit";

/**
 * Shortens a fact in the middle: facts quote files, which may be long. The problem is at the beginning, the remedy at the end.
 */
const inOneLine = (fact: string): string => {
  const line = fact.replace(/\s*[\r\n\u2028\u2029]\s*/g, " ");
  return line.length > 600 ? `${line.slice(0, 400)} … ${line.slice(-200)}` : line;
};

/** Training cannot continue from a checkpoint. The message names the file and the remedy. */
export class CheckpointError extends Error {
  /** The file or folder that is wrong. */
  readonly path: string;
  readonly problem: CheckpointProblem;

  constructor(problem: CheckpointProblem, path: string, fact: string, cause?: unknown) {
    super(`${path} ${inOneLine(fact)}`, cause === undefined ? undefined : { cause });
    this.name = "CheckpointError";
    this.path = path;
    this.problem = problem;
    Object.defineProperty(this, brand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && brand in value;
  }
}
