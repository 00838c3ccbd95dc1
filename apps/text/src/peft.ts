import { existsSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { readJsonFile } from "@halfstep/data/node";
import type { Lora } from "@halfstep/nn";
import { type PeftAdapter, readPeftAdapter, writePeftAdapter } from "@halfstep/trainer/node";
import type { ModelPurpose } from "./model-purpose.js";

/** The classes of transformers by PEFT's names of their tasks. */
const architectures: Readonly<Record<string, string>> = {
  SEQ_CLS: "BertForSequenceClassification",
  TOKEN_CLS: "BertForTokenClassification",
};

/** The fields of a configuration that decide what a model is for. */
type Labels = Readonly<Record<string, unknown>>;

/** Adapters, with what their folder says of the labels of their head. */
export interface ForeignAdapter {
  readonly adapter: PeftAdapter;
  /** Fields of a `config.json` for the model with its adapters. */
  readonly config: Labels;
}

/**
 * Reads adapters of PEFT's for a classifier or tagger. Their labels are those of a `config.json` in the folder, or else numbered.
 * @throws DataError where they have another task, or no head; and as `readPeftAdapter`
 */
export async function readForeignAdapter(directory: string): Promise<ForeignAdapter> {
  const adapter = await readPeftAdapter(directory);
  const { taskType = "none" } = adapter;
  const architecture = Object.hasOwn(architectures, taskType) ? architectures[taskType] : undefined;
  if (architecture === undefined)
    throw new DataError(
      join(directory, "adapter_config.json"),
      `has the task_type ${taskType}: ${Object.keys(architectures).join(" and ")} are supported`,
    );
  const labels = headLabels(adapter);
  if (labels === undefined)
    throw new DataError(directory, "has adapters without a classifier in modules_to_save");
  const path = join(directory, "config.json");
  const given = existsSync(path) ? ((await readJsonFile(path)) as Labels | null) : null;
  return {
    adapter,
    config: {
      id2label: Object.fromEntries(
        Array.from({ length: labels }, (_, label) => [label, `LABEL_${label}`]),
      ),
      ...labelFields(given ?? {}),
      architectures: [architecture],
    },
  };
}

/** The number of labels of the head among the weights. */
const headLabels = ({ state }: PeftAdapter): number | undefined =>
  Object.entries(state).find(([name]) =>
    /^base_model\.model\.classifier\.(modules_to_save\.(default\.)?)?weight$/.test(name),
  )?.[1].shape[0];

const labelFields = ({ id2label, problem_type }: Labels): Labels => ({
  ...(id2label !== undefined && { id2label }),
  ...(problem_type !== undefined && { problem_type }),
});

/** Writes the adapters of a training for PEFT, with the names of the labels in a `config.json` beside them. */
export const writeAdapter = (
  directory: string,
  lora: Lora,
  { task, labels, multiLabel }: ModelPurpose,
  base: string | undefined,
): Promise<void> =>
  writePeftAdapter(directory, lora, {
    ...{ taskType: task === "tags" ? "TOKEN_CLS" : "SEQ_CLS", base },
    fill: (folder) => {
      const config = {
        model_type: "bert",
        id2label: Object.fromEntries(labels.map((label, i) => [i, label])),
        label2id: Object.fromEntries(labels.map((label, i) => [label, i])),
        ...(multiLabel && { problem_type: "multi_label_classification" }),
      };
      return folder.write("config.json", `${JSON.stringify(config, undefined, 2)}\n`);
    },
  });
