import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Summary } from "@halfstep/trainer";
import { print, reportOutcome, say } from "@halfstep/trainer/cli";
import { RunFolder, readSummary, resultsTable, stopSignals } from "@halfstep/trainer/node";
import type { TrainCommand } from "./commands.js";
import { folds } from "./examples.js";
import { describeTests, lossUnitOf } from "./figures.js";
import { settingsOf } from "./settings.js";
import { type TaskCommand, withTaskDefaults } from "./task-defaults.js";

/** Trains a model on each fold, in separate folders, and shows the results of all. A resumed run skips completed folds. */
export async function trainFolds(
  options: TrainCommand,
  trainModel: (options: TaskCommand) => Promise<number>,
): Promise<number> {
  const { out, resume, json } = options;
  const summaries: Summary[] = [];
  // A signal between two folds also ends the program in order.
  const stop = stopSignals();
  for (let fold = 0; fold < folds; fold++) {
    const place = placeOf(out, fold);
    if (resume === undefined || !existsSync(summaryIn(place))) {
      const one = withTaskDefaults({ ...options, fold, out: place });
      const code = stop.exitCode() ?? (await trainModel(one));
      if (code !== 0) {
        say(`stopped; --resume auto --out ${out} goes on from here`);
        return code;
      }
    }
    summaries.push(await readSummary(summaryIn(place)));
  }
  stop.dispose();
  const { task, seed, device } = summaries[0] as Summary;
  const runs = summaries.flatMap((summary) => summary.runs);
  const settings = { ...settingsOf(withTaskDefaults({ ...options, fold: 0 })), fold: "all" };
  const folder = new RunFolder(out, { onNote: say });
  const whole = await folder
    .finish({ schema: 1, task, seed, device, settings, runs }, lossUnitOf(options))
    .finally(() => folder.close());
  print(
    json ? JSON.stringify(whole, undefined, 2) : `${resultsTable(whole)}\n${describeTests(runs)}`,
  );
  say(`model: ${join(out, "fold-*")} · report: ${join(out, "report.html")}`);
  return reportOutcome(whole, say);
}

const placeOf = (directory: string, fold: number): string => join(directory, `fold-${fold}`);

const summaryIn = (place: string): string => join(place, "summary.json");

/** The folder of a fold's model where each fold has its own. */
export const modelOfFold = (directory: string, fold: number): string =>
  existsSync(placeOf(directory, fold)) ? placeOf(directory, fold) : directory;
