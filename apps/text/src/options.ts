import { chosenPrecision, command, requireLoraBase, UsageError } from "@halfstep/trainer/cli";
import type {
  DataFlags,
  EvaluateCommand,
  ExportCommand,
  PredictCommand,
  TrainCommand,
} from "./commands.js";
import { evaluateFlags, exportFlags, predictFlags, type TrainFlags, trainFlags } from "./flags.js";
import { asTask } from "./run-classifier.js";

type TextCommand = TrainCommand | EvaluateCommand | PredictCommand | ExportCommand;

/** The command line's command. Throws a CommanderError for wrong flags, and for `--help` after it was shown. */
export function parseOptions(args: readonly string[]): TextCommand {
  let chosen: TextCommand | undefined;
  const main = command(
    "npm start -w text --",
    "BERT, small: learns to classify texts, to tag words, or to tell hidden words, in mixed precision.",
  );
  trainFlags(main.command("train").description("trains a model of a task, and tests it")).action(
    (flags) => {
      chosen = trainCommand(flags);
    },
  );
  evaluateFlags(main.command("evaluate").description("tests a trained model")).action((flags) => {
    chosen = { command: "evaluate", ...flags, model: modelOf(flags) };
  });
  predictFlags(
    main.command("predict").description("classes of texts, tags of words, or hidden words"),
  ).action((texts: readonly string[], flags) => {
    chosen = { command: "predict", texts, ...flags, model: modelOf(flags) };
  });
  exportFlags(
    main.command("export <file>").description("writes a trained model as an ONNX file"),
  ).action((file: string, flags) => {
    chosen = { command: "export", file, ...flags, model: modelOf(flags) };
  });
  main.parse(args, { from: "user" });
  // Without a command, commander shows the help and throws.
  return chosen as NonNullable<typeof chosen>;
}

/** @throws UsageError where none or both are given */
function modelOf({ model, pretrained }: { model?: string; pretrained?: string }): string {
  const given = model ?? pretrained;
  if (given === undefined || (model ?? pretrained) !== (pretrained ?? model))
    throw new UsageError("name one model: --model for one of train, --pretrained for others");
  return given;
}

/** @throws UsageError for adapters of what they cannot be beside */
function requireAdaptable({
  task,
  lora,
  adversarial,
}: Pick<TrainCommand, "task" | "lora" | "adversarial">): void {
  if (lora !== undefined && task === "mlm")
    throw new UsageError("--lora is for classes and tags, not for mlm");
  if (lora !== undefined && adversarial > 0)
    throw new UsageError("--adversarial moves embeddings, which --lora freezes: give one of them");
}

/** @throws UsageError for flags that exclude each other */
function trainCommand(flags: TrainFlags): TrainCommand {
  const { do_train, do_eval, fp16, loss_scale, warmup_proportion, out, ...same } = asTask(flags);
  const { task } = same;
  const staticLossScale = loss_scale === 0 ? undefined : loss_scale;
  if (fp16 && flags.precision !== undefined)
    throw new UsageError("--fp16 is --precision float16: give one of the two");
  if (staticLossScale !== undefined && flags.initScale !== undefined)
    throw new UsageError("--loss_scale is fixed, and --init-scale where a dynamic one starts");
  requireLoraBase(same);
  requireAdaptable(same);
  requireLoss(same);
  requireLabels(same);
  const isBoth = !do_train && !do_eval;
  return {
    ...same,
    command: "train",
    isTraining: isBoth || do_train === true,
    isEvaluating: isBoth || do_eval === true,
    precision: chosenPrecision(fp16 ? "float16" : flags.precision, {
      staticLossScale: loss_scale,
      initScale: flags.initScale,
    }),
    ...(staticLossScale !== undefined && { staticLossScale }),
    warmup: warmup_proportion,
    out: out ?? `runs/text/${task}`,
  };
}

type GivenLoss = Pick<TrainCommand, "task" | "crf" | "classWeights" | "labelSmoothing" | "focal">;

/** @throws UsageError for losses that exclude each other, or that the task does not have */
function requireLoss({ task, crf, classWeights, labelSmoothing, focal }: GivenLoss): void {
  if (labelSmoothing > 0 && focal > 0)
    throw new UsageError("--label-smoothing and --focal are two losses: give one of them");
  if (classWeights !== undefined && focal > 0)
    throw new UsageError("--class-weights and --focal both weigh examples: give one of them");
  if (labelSmoothing === 0 && focal === 0 && classWeights === undefined) return;
  const flags = "--label-smoothing, --focal and --class-weights";
  if (task === "tags" && crf)
    throw new UsageError(`${flags} are for tags that stand alone: add --no-crf`);
  if (task === "mlm") throw new UsageError(`${flags} are for classes and tags, not for mlm`);
}

type GivenLabels = DataFlags & Pick<TrainCommand, "task" | "bag" | "focal">;

/** @throws UsageError for flags of labels that the task does not have */
function requireLabels(flags: GivenLabels): void {
  const { task, data, multiLabel, documentContext, textPairColumn, bag, focal } = flags;
  const isOfClasses = task === "spam" || task === "sentences";
  if ((multiLabel || textPairColumn !== undefined) && !(isOfClasses && data !== undefined))
    throw new UsageError(
      `${multiLabel ? "--multi-label" : "--text-pair-column"} is for texts of your own: name their file by --data, with --task sentences`,
    );
  if (multiLabel && (bag || focal > 0))
    throw new UsageError(
      `${bag ? "--bag" : "--focal"} is for classes, of which a text has one: leave it out with --multi-label`,
    );
  if (documentContext && !(task === "tags" && data !== undefined))
    throw new UsageError(
      "--document-context is for tags in columns, with -DOCSTART- between documents: name their file by --data",
    );
}
