import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { MetricsLine } from "@halfstep/trainer";
import { type Ended, runApp } from "@halfstep/vitest/run-app";

export const languageModel = (...args: readonly string[]): Promise<Ended> =>
  runApp("language-model", args);

export const linesOf = (directory: string): MetricsLine[] =>
  readFileSync(join(directory, "metrics.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
