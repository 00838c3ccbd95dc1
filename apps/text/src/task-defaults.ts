import type { TrainCommand } from "./commands.js";
import type { TaskName } from "./tasks.js";

/** The training settings of a task, which flags override. */
export interface TaskDefaults {
  readonly epochs: number;
  readonly batchSize: number;
  readonly lr: number;
  /** Tokens of a text. */
  readonly maxLength: number;
  readonly hiddenSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly dropout: number;
  /** Whether a bag of words learns with a model of classes. */
  readonly bag: boolean;
  /** The least number of occurrences of a token in the vocabulary. */
  readonly leastCount: number;
  /** The least number of occurrences of a word feature, for tagging. */
  readonly leastFeature: number;
}

const small = {
  layers: 2,
  heads: 2,
  hiddenSize: 64,
  dropout: 0.1,
  bag: false,
  leastCount: 3,
  leastFeature: 50,
};

export const taskDefaults: Readonly<Record<TaskName, TaskDefaults>> = {
  spam: { ...small, epochs: 4, batchSize: 32, lr: 1e-3, maxLength: 128 },
  sentences: {
    ...{ ...small, epochs: 3, batchSize: 32, lr: 1e-3, maxLength: 64 },
    ...{ dropout: 0.3, bag: true },
  },
  tags: { ...small, epochs: 1, batchSize: 32, lr: 3e-3, maxLength: 160, leastCount: 10 },
  mlm: { ...small, epochs: 2, batchSize: 64, lr: 1.5e-3, maxLength: 64, leastCount: 10 },
};

/** A command that leaves nothing to the task. */
export type TaskCommand = Omit<TrainCommand, keyof TaskDefaults | "fold"> &
  TaskDefaults & { readonly fold: number };

/** A command with the task's defaults for the options that were not given. */
export const withTaskDefaults = (
  options: TrainCommand & { readonly fold: number },
): TaskCommand => {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...taskDefaults[options.task], ...Object.fromEntries(given) } as TaskCommand;
};
