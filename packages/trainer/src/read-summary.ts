import { CheckpointError } from "./checkpoint/checkpoint-error.js";
import { boundedText } from "./files/bounded-text.js";
import type { RunSummary, Summary } from "./summary.js";

/** The most bytes that are read as a summary: enough for a thousand runs. */
const summaryLimit = 2 ** 22;

/**
 * Reads the `summary.json` of a run. Null, which stands for numbers that were not finite, becomes NaN again.
 * @throws CheckpointError where it is missing, or was not written by `RunFolder`
 *
 * @example
 * const { runs } = await readSummary("runs/digits/summary.json");
 */
export async function readSummary(path: string): Promise<Summary> {
  const text = await boundedText(path, summaryLimit);
  let value: unknown;
  try {
    value = withNaN(JSON.parse(text));
  } catch {
    // Validated below.
  }
  if (isSummary(value)) return value;
  throw new CheckpointError(
    "malformed",
    path,
    "is no summary of a run: restore it, or remove it and train again",
  );
}

/** Test results of a diverged run are null in JSON. */
function withNaN(value: unknown): unknown {
  if (!isRecord(value) || !Array.isArray(value.runs)) return value;
  const runs = value.runs.map((run: unknown) =>
    isRecord(run) && isRecord(run.test)
      ? {
          ...run,
          test: Object.fromEntries(
            Object.entries(run.test).map(([name, found]) => [name, found ?? Number.NaN]),
          ),
        }
      : run,
  );
  return { ...value, runs };
}

function isSummary(value: unknown): value is Summary {
  if (!isRecord(value) || value.schema !== 1) return false;
  const { task, seed, device, settings, runs } = value;
  return (
    typeof task === "string" &&
    typeof seed === "number" &&
    isRecord(device) &&
    [device.kind, device.adapter, device.tier].every((text) => typeof text === "string") &&
    isOptional(settings, isSettings) &&
    Array.isArray(runs) &&
    runs.every(isRunSummary)
  );
}

const numbers = [
  ...["steps", "appliedSteps", "skippedSteps", "finalScale", "msPerStep", "samplesPerSecond"],
  ...["peakBytes", "activationBytes", "parameterBytes", "optimizerBytes", "wallSeconds"],
];

const counters = [
  ...["hostWaits", "submits", "dispatches", "castDispatches", "buffersCreated"],
  "bindGroupsCreated",
];

/** Whether a value from a file is a valid summary of a run, for tables and reports. */
export function isRunSummary(value: unknown): value is RunSummary {
  if (!isRecord(value)) return false;
  const { precision, test, perStep, deviceMsPerStep, phases, hyperparameters } = value;
  return (
    typeof precision === "string" &&
    typeof value.parameterSha256 === "string" &&
    numbers.every((name) => typeof value[name] === "number") &&
    isRecord(test) &&
    "loss" in test &&
    Object.values(test).every((found) => typeof found === "number") &&
    isOptional(value.isTested, (isTested) => isTested === false) &&
    isRecord(perStep) &&
    counters.every((name) => typeof perStep[name] === "number") &&
    isOptional(deviceMsPerStep, (time) => typeof time === "number") &&
    isOptional(phases, (costs) => isRecord(costs) && Object.entries(costs).every(isPhase)) &&
    isOptional(hyperparameters, isHyperparameters)
  );
}

const phaseNames = new Set(["data", "record", "submit", "evaluation", "checkpoint"]);

const isPhase = ([name, cost]: readonly [string, unknown]): boolean =>
  phaseNames.has(name) &&
  isRecord(cost) &&
  [cost.milliseconds, cost.times, cost.peakBytes].every((each) => typeof each === "number");

function isHyperparameters(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { optimizer, groups, lossScale } = value;
  return (
    isSettings(optimizer) &&
    isSettings(lossScale) &&
    isOptional(groups, (each) => Array.isArray(each) && each.every(isSettings))
  );
}

const isSettings = (value: unknown): boolean =>
  isRecord(value) &&
  Object.values(value).every((each) => (Array.isArray(each) ? each.every(isPlain) : isPlain(each)));

const isPlain = (value: unknown): boolean => value === null || typeof value !== "object";

const isOptional = (value: unknown, is: (value: unknown) => boolean): boolean =>
  value === undefined || is(value);

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
