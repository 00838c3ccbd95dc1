/** The thing that keeps a process from joining its job. */
export type SetupProblem =
  /** The package koffi, which calls C libraries, is not installed. */
  | "koffi"
  /** There is no MPI library, or it does not initialize. */
  | "mpi"
  /** The MPI library is not that of the launcher. */
  | "launcher";

const brand = Symbol.for("@halfstep/SetupError");

/** A process cannot join the job that it was launched in. */
export class SetupError extends Error {
  readonly problem: SetupProblem;

  constructor(problem: SetupProblem, message: string) {
    super(message);
    this.name = "SetupError";
    this.problem = problem;
    Object.defineProperty(this, brand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && brand in value;
  }
}
