import { type Settings, settingsOf as settingsNamed } from "@halfstep/trainer/cli";
import type { TaskCommand } from "./task-defaults.js";

/** What has to be the same when training goes on, by flag. */
export const settingsOf = (options: TaskCommand): Settings => ({
  ...settingsNamed(options, ["task", "data", "limit", "fold", "mailPart", "words", "corpus"]),
  ...settingsNamed(options, ["encoding", "textColumn", "labelColumn", "header"]),
  ...settingsNamed(options, ["init", "precision"]),
  num_train_epochs: options.epochs,
  ...settingsNamed(options, ["maxSteps"]),
  train_batch_size: options.batchSize,
  gradient_accumulation_steps: options.accumulate,
  learning_rate: options.lr,
  warmup_proportion: options.warmup,
  max_seq_length: options.maxLength,
  ...settingsNamed(options, ["hiddenSize", "layers", "heads", "dropout", "leastCount"]),
  ...settingsNamed(options, ["bag", "crf", "wordFeatures", "leastFeature"]),
  ...settingsNamed(options, ["labelSmoothing", "focal", "layerDecay", "adversarial", "seed"]),
  loss_scale: options.staticLossScale ?? 0,
  ...settingsNamed(options, ["initScale"]),
});
