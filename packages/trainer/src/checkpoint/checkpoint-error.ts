// `instanceof` looks for this brand, so that an error thrown by another copy of the package is recognised too.
const brand = Symbol.for("@halfstep/CheckpointError");

/** What is wrong with a checkpoint, for programs; the message says it for people. */
export type CheckpointProblem =
  /** There is no such folder, or it has no checkpoint that is whole. */
  | "not-found"
  /** A file is not there, or is no file. */
  | "missing-file"
  /** A file is there that the manifest does not list. */
  | "extra-file"
  /** A file has not as many bytes as the manifest says. */
  | "length"
  /** A file has other bytes than were saved. */
  | "hash"
  /** `manifest.json` is not what was written. */
  | "manifest"
  /** It was made by a later version of this package. */
  | "version"
  /** `state.json` or a safetensors file is malformed, though its hash is right. */
  | "malformed"
  /** A file cannot be read. */
  | "unreadable"
  /** It is whole, but of another model, optimizer, recipe or log. */
  | "misfit";

/** Facts quote what files say, which may be as long as the file. What is wrong stands at the beginning, the remedy at the end. */
const inOneLine = (fact: string): string => {
  const line = fact.replace(/\s*[\r\n\u2028\u2029]\s*/g, " ");
  return line.length > 600 ? `${line.slice(0, 400)} … ${line.slice(-200)}` : line;
};

/** A checkpoint that cannot be gone on from. The message names the file and the remedy. */
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
