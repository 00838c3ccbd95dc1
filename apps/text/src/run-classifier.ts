import { existsSync } from "node:fs";
import { UsageError } from "@halfstep/trainer/cli";
import type { TrainCommand } from "./commands.js";
import type { TrainFlags } from "./flags.js";
import { glueData, glueNames } from "./glue.js";
import type { TaskDefaults } from "./task-defaults.js";

/** The defaults of run_classifier, for a BERT that was trained before. */
const fineTuning = {
  ...{ epochs: 3, batchSize: 32, lr: 5e-5, maxLength: 128 },
  ...{ dropout: 0.1, bag: false },
} satisfies Partial<TaskDefaults>;

/** Flags of a task, in our own spelling where there is one. */
export type TaskFlags = Omit<TrainFlags, "task" | "max_seq_length"> &
  Pick<TrainCommand, "task" | "maxLength">;

/**
 * The flags of run_classifier as those of this program. A command that names a task of GLUE by `--task_name` means what it means there:
 * `--train_batch_size` counts the texts of a step, which `--gradient_accumulation_steps` divides.
 * @throws UsageError for flags that lack another, or exclude each other
 */
export function asTask(flags: TrainFlags): TaskFlags {
  const { task, task_name, data_dir, bert_model, do_lower_case, no_cuda, ...others } = flags;
  const { max_seq_length, ...same } = others;
  if ((task === undefined) === (task_name === undefined))
    throw new UsageError("name one task: --task for ours, --task_name for GLUE's");
  if ((task_name === undefined) !== (data_dir === undefined))
    throw new UsageError(
      "--task_name and --data_dir belong together: a task of GLUE and its folder",
    );
  if (bert_model !== undefined && flags.pretrained !== undefined)
    throw new UsageError("--bert_model is --pretrained: give one of the two");
  if (bert_model !== undefined && !existsSync(bert_model))
    throw new UsageError(
      `--bert_model ${bert_model}: there is no such folder; put config.json, vocab.txt and the weights of a BERT there, or leave it out to train a small one`,
    );
  const shared = {
    ...(bert_model !== undefined && { ...fineTuning, pretrained: bert_model }),
    ...same,
    ...(max_seq_length !== undefined && { maxLength: max_seq_length }),
    ...(do_lower_case && { lowerCase: true }),
    ...(no_cuda && { device: "cpu" as const }),
  };
  if (task_name === undefined || data_dir === undefined)
    return { ...shared, task: task as TrainCommand["task"] };
  return {
    maxLength: fineTuning.maxLength,
    ...shared,
    ...inMicroBatches(shared),
    ...glueOf(task_name, data_dir),
    task: "sentences",
    out: flags.out ?? `runs/text/${task_name.toLowerCase()}`,
  };
}

const glueOf = (task: string, directory: string) => {
  if (task.toLowerCase() === "sts-b")
    throw new UsageError("--task_name STS-B scores pairs by numbers, and classes are wanted here");
  const data = glueData(task, directory);
  if (!data)
    throw new UsageError(
      `--task_name ${task} is none of ${glueNames.join(", ")}: for files of your own there are --task and --data`,
    );
  return data;
};

/** @throws UsageError where a batch cannot be divided */
function inMicroBatches({
  batchSize,
  accumulate,
}: Pick<TrainFlags, "batchSize" | "accumulate">): Pick<TrainFlags, "batchSize"> {
  const whole = batchSize ?? fineTuning.batchSize;
  if (whole % accumulate !== 0)
    throw new UsageError(
      `--train_batch_size ${whole} is no multiple of --gradient_accumulation_steps ${accumulate}`,
    );
  return { batchSize: whole / accumulate };
}
