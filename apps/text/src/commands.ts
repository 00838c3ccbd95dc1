import type { AdapterSettings } from "@halfstep/trainer";
import type { ClassFlags, OnnxFlag, PretrainedFlags, RunFlags } from "@halfstep/trainer/cli";
import type { MailPart } from "./mails.js";
import type { OwnData } from "./own-file.js";
import type { Corpus, TaskName } from "./tasks.js";

/** The flags of reading a custom file. */
export type DataFlags = Partial<Omit<OwnData, "labels">>;

/** The flags of `train`. Undefined ones have the defaults of the task: see `task-defaults.ts`. */
export interface TrainCommand
  extends DataFlags,
    Pick<RunFlags, "maxSteps" | "seed" | "accumulate" | "saveEvery" | "resume">,
    Pick<RunFlags, "tensorboard" | "wandb" | "mlflow" | "otel">,
    Pick<RunFlags, "adapter" | "device" | "json">,
    Pick<RunFlags, "distributed" | "exchange" | "wire" | "innerSteps" | "powerSgd" | "deadline">,
    ClassFlags,
    Pick<PretrainedFlags, "key">,
    AdapterSettings {
  readonly command: "train";
  readonly task: TaskName;
  readonly isTraining: boolean;
  readonly isEvaluating: boolean;
  readonly precision: string;
  /** Initial value of a dynamic loss scale. */
  readonly initScale?: number | undefined;
  readonly staticLossScale?: number | undefined;
  readonly epochs?: number | undefined;
  readonly batchSize?: number | undefined;
  readonly lr?: number | undefined;
  readonly maxLength?: number | undefined;
  readonly warmup: number;
  readonly limit?: number;
  readonly mailPart: MailPart;
  readonly words: number;
  readonly corpus: Corpus;
  readonly fold: number | "all";
  /** The folder of a BERT to start from. */
  readonly pretrained?: string | undefined;
  /** Whether the words of `pretrained` are in lower case. Undefined: as its folder says. */
  readonly lowerCase?: boolean | undefined;
  readonly hiddenSize?: number;
  readonly layers?: number;
  readonly heads?: number;
  readonly dropout?: number | undefined;
  readonly leastCount?: number;
  readonly leastFeature?: number;
  readonly bag?: boolean | undefined;
  readonly crf: boolean;
  readonly wordFeatures: boolean;
  readonly focal: number;
  readonly layerDecay: number;
  readonly adversarial: number;
  readonly out: string;
}

interface Use extends Pick<RunFlags, "adapter" | "device" | "json">, Pick<PretrainedFlags, "key"> {
  readonly model: string;
  /** A folder of PEFT's adapters, which are added to the model. */
  readonly peft?: string;
  readonly half: boolean;
}

export interface EvaluateCommand extends Use, DataFlags {
  readonly command: "evaluate";
  readonly limit?: number;
}

/** The flags of `export`. */
export interface ExportCommand extends OnnxFlag, Pick<Use, "model" | "peft" | "key"> {
  readonly command: "export";
  readonly file: string;
}

export interface PredictCommand extends Use {
  readonly command: "predict";
  /** Of standard input. Default: UTF-8, or UTF-16 with its mark. */
  readonly encoding?: string;
  /** Empty: the lines of standard input. */
  readonly texts: readonly string[];
}
