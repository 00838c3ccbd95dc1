import { isFirstRank } from "./job.js";

// In a job of several processes, rank 0 speaks for all.

/** Writes a line for people to stderr; stdout is for results. */
export const say = (line: string): void => {
  if (isFirstRank) process.stderr.write(`${line}\n`);
};

/** Writes a result to stdout. */
export const print = (text: string): void => {
  if (isFirstRank) process.stdout.write(`${text}\n`);
};
