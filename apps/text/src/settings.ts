import {
  type OpenRunOptions,
  type Settings,
  settingsOf as settingsNamed,
} from "@halfstep/trainer/cli";
import type { TaskCommand } from "./task-defaults.js";

/** The settings that must be unchanged when training is resumed, by flag. */
export const settingsOf = (options: TaskCommand): Settings => ({
  ...settingsNamed(options, ["task", "data", "limit", "fold", "mailPart", "words", "corpus"]),
  ...settingsNamed(options, ["encoding", "textColumn", "labelColumn", "header"]),
  ...settingsNamed(options, ["textPairColumn", "labelNames", "multiLabel", "documentContext"]),
  ...settingsNamed(options, ["testData", "tokenColumn", "tagColumn"]),
  ...settingsNamed(options, ["pretrained", "key", "lowerCase", "lora", "loraAlpha", "loraTargets"]),
  ...settingsNamed(options, ["precision", "epochs", "maxSteps", "batchSize"]),
  ...settingsNamed(options, ["accumulate", "lr"]),
  warmup_proportion: options.warmup,
  max_seq_length: options.maxLength,
  ...settingsNamed(options, ["hiddenSize", "layers", "heads", "dropout", "leastCount"]),
  ...settingsNamed(options, ["bag", "crf", "wordFeatures", "leastFeature"]),
  ...settingsNamed(options, [
    "labelSmoothing",
    "classWeights",
    "focal",
    "layerDecay",
    "adversarial",
    "seed",
  ]),
  loss_scale: options.staticLossScale ?? 0,
  ...settingsNamed(options, ["initScale"]),
});

/** The options of a run that are not settings. All other options are settings, by the names of their flags. */
export const runOptionsOf = (options: TaskCommand): OpenRunOptions => {
  const { task, seed, out, resume, saveEvery, adapter, device, json } = options;
  const { tensorboard, wandb, mlflow, otel } = options;
  const { distributed, deadline } = options;
  return {
    ...{ task, seed, out, saveEvery, json, settings: settingsOf(options) },
    ...{ tensorboard, wandb, mlflow, otel },
    ...{ distributed, deadline },
    ...(resume !== undefined && { resume }),
    ...(adapter !== undefined && { adapter }),
    ...(device !== undefined && { device }),
  };
};
