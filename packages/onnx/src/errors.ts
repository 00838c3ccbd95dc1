/**
 * Why a model was not written or read: "unsupported" ops or operators, "size" of a file, "malformed" bytes, or "inputs" that do not fit the
 * model or the graph.
 */
export type OnnxProblem = "unsupported" | "size" | "malformed" | "inputs";

/** An error of this package. */
export class OnnxError extends Error {
  readonly problem: OnnxProblem;
  /** The ops of a model, or operators of a graph, that are not supported. */
  readonly unsupported: readonly string[];

  constructor(problem: OnnxProblem, message: string, unsupported: readonly string[] = []) {
    super(message);
    this.name = "OnnxError";
    this.problem = problem;
    this.unsupported = unsupported;
  }
}
