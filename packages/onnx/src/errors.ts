/**
 * Why a model was not written or read: "unsupported" ops or operators, "size" of a file, "malformed" bytes, or "inputs" that do not fit the
 * model or the graph.
 */
export type OnnxProblem = "unsupported" | "size" | "malformed" | "inputs";

/** The most letters of a message, which may quote names of a file. */
const longest = 800;

/** A message on one line, without the middle of a long one. */
function oneLine(message: string): string {
  const line =
    message.length <= longest
      ? message
      : `${message.slice(0, longest / 2)} … ${message.slice(-longest / 2)}`;
  return line.replace(/[\p{Cc}\u2028\u2029]/gu, "\ufffd");
}

/** An error of this package. Its message is one line. */
export class OnnxError extends Error {
  readonly problem: OnnxProblem;
  /** The ops of a model, or operators of a graph, that are not supported. */
  readonly unsupported: readonly string[];
  /** The file that was read, where it has a name. The message begins with it. */
  readonly source: string | undefined;

  constructor(
    problem: OnnxProblem,
    message: string,
    unsupported: readonly string[] = [],
    source?: string,
  ) {
    super(source === undefined ? oneLine(message) : `${source}: ${oneLine(message)}`);
    this.name = "OnnxError";
    this.problem = problem;
    this.unsupported = unsupported;
    this.source = source;
  }
}

/** What `read` gives, with errors that name the file. */
export function naming<T>(source: string | undefined, read: () => T): T {
  if (source === undefined) return read();
  try {
    return read();
  } catch (error) {
    if (!(error instanceof OnnxError) || error.source !== undefined) throw error;
    throw new OnnxError(error.problem, error.message, error.unsupported, source);
  }
}
