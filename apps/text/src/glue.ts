import { join } from "node:path";
import type { OwnData } from "./own-file.js";

/** Files and columns of a task of GLUE (Wang et al. 2018) as it is published. */
interface GlueTask
  extends Pick<OwnData, "textColumn" | "textPairColumn" | "labelColumn" | "header"> {
  /** The file to test on. Default: `dev.tsv`; the labels of `test.tsv` are not published. */
  readonly dev?: string;
}

const pair = { textColumn: "sentence1", textPairColumn: "sentence2", labelColumn: "label" };

/** The tasks of run_classifier that have classes, by their names in lower case. */
const tasks: Readonly<Record<string, GlueTask>> = {
  cola: { labelColumn: "2", textColumn: "4", header: false },
  "sst-2": { textColumn: "sentence", labelColumn: "label" },
  mrpc: { textColumn: "#1 String", textPairColumn: "#2 String", labelColumn: "Quality" },
  qqp: { textColumn: "question1", textPairColumn: "question2", labelColumn: "is_duplicate" },
  mnli: { ...pair, labelColumn: "gold_label", dev: "dev_matched.tsv" },
  "mnli-mm": { ...pair, labelColumn: "gold_label", dev: "dev_mismatched.tsv" },
  qnli: { textColumn: "question", textPairColumn: "sentence", labelColumn: "label" },
  rte: pair,
  wnli: pair,
};

/** Names of the tasks, as GLUE spells them. */
export const glueNames: readonly string[] = Object.keys(tasks).map((name) => name.toUpperCase());

/** How the files of a task in a folder are read; undefined for a name that is none of {@link glueNames}, in any case of letters. */
export function glueData(
  name: string,
  directory: string,
): Pick<OwnData, (keyof GlueTask & keyof OwnData) | "data" | "testData"> | undefined {
  const key = name.toLowerCase();
  const task = Object.hasOwn(tasks, key) ? tasks[key] : undefined;
  if (!task) return undefined;
  const { dev = "dev.tsv", ...columns } = task;
  return {
    ...{ header: true, ...columns },
    data: join(directory, "train.tsv"),
    testData: join(directory, dev),
  };
}
