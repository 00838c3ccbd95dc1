/** Writes a line for people to stderr; stdout is for results. */
export const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

/** Writes a result to stdout. */
export const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};
