import { closeSync, openSync, readSync } from "node:fs";
import { CheckpointError } from "./checkpoint/checkpoint-error.js";
import { parseJson } from "./checkpoint/manifest.js";
import type { Locate } from "./files/located.js";
import type { MetricsLine } from "./summary.js";

/** The most bytes of a line; `RunFolder` writes some hundred. */
const longestLine = 2 ** 20;

/**
 * Reads the lines of a `metrics.jsonl` lazily.
 * @param bytes that are read. Default: all
 * @param locate finds the file. Default: by its path
 * @throws CheckpointError where a line was not written by `RunFolder`
 */
export function* readMetrics(
  path: string,
  {
    bytes = Number.POSITIVE_INFINITY,
    locate = (each) => each,
  }: { readonly bytes?: number; readonly locate?: Locate } = {},
): Generator<MetricsLine> {
  let number = 0;
  for (const text of linesOf(locate(path), bytes)) {
    number++;
    if (text === "") continue;
    const line = text === undefined ? undefined : parseJson(text);
    if (!isMetricsLine(line))
      throw new CheckpointError(
        "malformed",
        path,
        `has no step or evaluation in line ${number}: restore it, or train anew into another folder`,
      );
    yield line;
  }
}

/** Whether the first line of a file is one of `RunFolder`. An unfinished line, of a process or machine that ended, may be one. */
export function mayBeMetrics(path: string): boolean {
  const file = openSync(path, "r");
  try {
    const chunk = new Uint8Array(2 ** 16);
    const start = chunk.subarray(0, readSync(file, chunk, 0, chunk.length, 0));
    const end = start.indexOf(newline);
    return end < 0 || isMetricsLine(parseJson(Buffer.from(start.subarray(0, end)).toString()));
  } finally {
    closeSync(file);
  }
}

/** The lines of a file that may be larger than memory. A line that is too long is undefined and ends the sequence. */
function* linesOf(path: string, bytes: number): Generator<string | undefined> {
  const file = openSync(path, "r");
  try {
    const chunk = new Uint8Array(2 ** 16);
    let rest = Buffer.alloc(0);
    for (let left = bytes; left > 0; ) {
      const count = readSync(file, chunk, 0, Math.min(chunk.length, left), null);
      if (count === 0) break;
      left -= count;
      rest = Buffer.concat([rest, chunk.subarray(0, count)]);
      for (let end = rest.indexOf(newline); end >= 0; end = rest.indexOf(newline)) {
        yield rest.toString("utf8", 0, end);
        rest = rest.subarray(end + 1);
      }
      if (rest.length > longestLine) return yield undefined;
    }
    if (rest.length > 0) yield rest.toString("utf8");
  } finally {
    closeSync(file);
  }
}

const newline = 0x0a;

/** Whether a value is a valid line for reports. */
function isMetricsLine(value: unknown): value is MetricsLine {
  if (typeof value !== "object" || value === null) return false;
  const line = value as Readonly<Record<string, unknown>>;
  const isCount = (name: string): boolean => Number.isSafeInteger(line[name]);
  const isNumber = (of: unknown): boolean => of === null || typeof of === "number";
  if (typeof line.precision !== "string" || !isCount("step") || !isCount("epoch")) return false;
  if (!("kind" in line))
    return [line.loss, line.scale, line.lr].every(isNumber) && typeof line.applied === "boolean";
  const { kind, values } = line;
  if (kind !== "evaluation" || typeof values !== "object" || values === null) return false;
  return Object.values(values).every(isNumber);
}
