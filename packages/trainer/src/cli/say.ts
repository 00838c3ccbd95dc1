/** To the person, on stderr: stdout is for results. */
export const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

/** A result, on stdout. */
export const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};
