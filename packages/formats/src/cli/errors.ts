/** An error of the CLI in one line, with its exit code: 2 for usage and input, 4 for storage. */
export class CliError extends Error {
  override readonly name: string = "CliError";
  readonly exitCode: 2 | 4;

  constructor(message: string, exitCode: 2 | 4 = 2) {
    super(message);
    this.exitCode = exitCode;
  }
}
