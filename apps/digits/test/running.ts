import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { StepMetrics, Summary } from "@halfstep/trainer";
import { type Ended, type RunAppOptions, runBundle, runStart } from "@halfstep/vitest/run-app";

export const tiny: readonly string[] = ["--limit", "64", "--batch-size", "32"];
/** For the CPU. */
export const tiniest: readonly string[] = ["--limit", "32", "--batch-size", "16"];

/** The help of the app, which bundles it. */
export const bundled = (): Promise<Ended> => runStart(["--help"]);

/** The app, once it has been bundled. */
export const digits = (flags: readonly string[], options?: RunAppOptions): Promise<Ended> =>
  runBundle("digits", flags, options);

/** What the app itself said on stderr: Dawn's own warnings cannot be silenced. */
export const saidOn = ({ stderr }: Ended): string[] =>
  stderr
    .split("\n")
    .filter((line) => line !== "" && !/^Warning: (maxDynamic|vkCreateInstance)/.test(line));

export const metricsOf = (directory: string): StepMetrics[] =>
  readFileSync(join(directory, "metrics.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

export const summaryOf = (directory: string): Summary =>
  JSON.parse(readFileSync(join(directory, "summary.json"), "utf8"));
