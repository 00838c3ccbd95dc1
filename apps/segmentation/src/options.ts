import {
  type ClassFlags,
  chosenPrecision,
  classFlags,
  command,
  fraction,
  notNegative,
  type OnnxFlag,
  oneOf,
  onnxFlag,
  type PretrainedFlags,
  positiveNumber,
  precisionName,
  pretrainedFlags,
  type RunFlags,
  runFlags,
  trackerDefaults,
  UsageError,
  wholeNumber,
} from "@halfstep/trainer/cli";
import { type Command, InvalidArgumentError, Option } from "commander";
import { splitNames } from "./pairs.js";
import type { SceneFlags } from "./scenes.js";
import type { SegmentationSettings } from "./train.js";

/** The flags of `train`. */
export interface TrainCommand
  extends Omit<RunFlags, "accumulate" | "dumpPlan" | "precision" | "initScale">,
    Omit<SceneFlags, "seed">,
    ClassFlags,
    PretrainedFlags,
    Partial<Pick<SegmentationSettings, "width" | "bilinear">>,
    Pick<SegmentationSettings, "tile" | "optimizer" | "schedule" | "weightDecay" | "clip"> {
  readonly command: "train";
  readonly precision: string;
  readonly initScale?: number;
}

/** The flags that name a network. */
interface NetworkFlags extends PretrainedFlags {
  /** The --out folder of a training, or a checkpoint. */
  readonly model: string;
}

type Place = Pick<RunFlags, "adapter" | "device" | "json"> &
  NetworkFlags & {
    /** Undefined: the one that the network was trained in. */
    readonly precision?: string;
  };

/** The flags of `evaluate`. */
export interface EvaluateCommand extends Place, Omit<SceneFlags, "data"> {
  readonly command: "evaluate";
  /** "earth", "digits", or a folder. Undefined: what the network was trained on, if it comes with the app. */
  readonly data?: string;
  readonly batchSize: number;
  /** Height and width of the tiles. Undefined: as in training, 128 for weights of others. */
  readonly tile?: number;
}

/** The flags of `predict`. */
export interface PredictCommand extends Place {
  readonly command: "predict";
  readonly pictures: readonly string[];
  /** Undefined: beside the pictures. */
  readonly output?: readonly string[];
  readonly scale?: number;
  /** Of weights of others: a table of the classes. */
  readonly classes?: string;
  readonly maskThreshold: number;
  /** Masks with a palette, by class. */
  readonly palette: boolean;
  readonly viz: boolean;
  /** False: no masks are written. */
  readonly save: boolean;
  readonly half: boolean;
}

/** The flags of `export`. */
export interface ExportCommand extends NetworkFlags, OnnxFlag {
  readonly command: "export";
  readonly file: string;
}

export type SegmentationCommand = TrainCommand | EvaluateCommand | PredictCommand | ExportCommand;

/** The command line's command. Throws a CommanderError for wrong flags, and for `--help` after it was shown. */
export function parseOptions(args: readonly string[]): SegmentationCommand {
  let chosen: SegmentationCommand | undefined;
  const main = command(
    "npm start -w segmentation --",
    "Trains a U-Net to tell what each pixel of a picture shows, and writes masks.",
  );
  trainFlags(main.command("train").description("trains a network")).action(
    ({ amp, ...flags }: Flags<TrainCommand> & { readonly amp: boolean }) => {
      const named = flags.precision ?? (amp ? "float16" : undefined);
      if (flags.pretrained !== undefined && (flags.width ?? flags.bilinear) !== undefined)
        throw new UsageError(
          "--width and --bilinear are of a new network, and --pretrained has its own: leave them out",
        );
      chosen = { command: "train", ...flags, precision: chosenPrecision(named, flags) };
    },
  );
  evaluateFlags(
    main
      .command("evaluate")
      .description("judges a network on held-out scenes, beside simple rules"),
  ).action((flags: Flags<EvaluateCommand>) => {
    chosen = { command: "evaluate", ...flags };
  });
  predictFlags(
    main.command("predict").description("writes masks of pictures").argument("<pictures...>"),
  ).action((pictures: readonly string[], flags: Omit<Flags<PredictCommand>, "pictures">) => {
    chosen = { command: "predict", pictures, ...flags };
  });
  onnxFlag(
    networkFlags(main.command("export <file>").description("writes a network as an ONNX file")),
  ).action((file: string, flags: Omit<Flags<ExportCommand>, "file">) => {
    chosen = { command: "export", file, ...flags };
  });
  main.parse(args, { from: "user" });
  // Without a command, commander shows the help and throws.
  return chosen as SegmentationCommand;
}

type Flags<Chosen> = Omit<Chosen, "command">;

const trainFlags = (train: Command): Command =>
  runFlags(
    pretrainedFlags(
      classFlags(sceneFlags(train, "earth")),
      "start from weights of torch or safetensors in milesial's form, which have their size",
    )
      .addOption(
        new Option("--amp", "mixed precision in float16").default(false).conflicts("precision"),
      )
      .option("--width <n>", "channels of the first level (default: 8)", wholeNumber(2))
      .option("--bilinear", "enlarge by interpolation, without transposed convolutions")
      .option("--tile <pixels>", "height and width of the tiles", wholeNumber(16), 64)
      .option("--optimizer <name>", "adamw or rmsprop", oneOf(["adamw", "rmsprop"]), "adamw")
      .option("--schedule <name>", "cosine or plateau", oneOf(["cosine", "plateau"]), "cosine")
      .option("--weight-decay <x>", "of AdamW", notNegative, 1e-2)
      .option("--clip <norm>", "largest norm of the gradients", positiveNumber, 1),
    {
      precision: undefined,
      epochs: 30,
      maxSteps: undefined,
      batchSize: 8,
      lr: 1e-2,
      seed: 0,
      staticLossScale: undefined,
      initScale: undefined,
      saveEvery: 200,
      resume: undefined,
      out: "runs/segmentation",
      adapter: undefined,
      device: undefined,
      json: false,
      tensorboard: false,
      ...trackerDefaults,
    },
    {
      precision: {
        description:
          "float32, float16, bfloat16, O0, O1, O2, O3, or another recipe (default: float32)",
      },
      batchSize: { description: "tiles in a batch" },
    },
  );

const evaluateFlags = (evaluate: Command): Command =>
  runFlags(
    modelFlags(sceneFlags(evaluate)).option(
      "--tile <pixels>",
      "height and width of the tiles (default: as in training, 128 for --pretrained)",
      wholeNumber(16),
    ),
    { batchSize: 8, seed: 0, adapter: undefined, device: undefined, json: false },
    {
      batchSize: { description: "tiles in a batch" },
      seed: { description: "seed of the scenes" },
      json: { description: "print JSON instead of the table" },
    },
  );

const predictFlags = (predict: Command): Command =>
  runFlags(
    modelFlags(predict)
      .option("-o, --output <masks...>", "files for the masks (default: NAME_OUT.png)")
      .option("-s, --scale <x>", "scale of the pictures (default: as in training)", positiveNumber)
      .option(
        "-t, --mask-threshold <p>",
        "of two classes, the least probability of the second",
        fraction,
        0.5,
      )
      .option("--classes <file>", "of --pretrained: a table of the classes, as of train")
      .option("--palette", "write masks with a palette: the class as index, in its colour", false)
      .option("-v, --viz", "write NAME_VIZ.png as well: classes in colours on the picture", false)
      .option("-n, --no-save", "write no masks")
      .option("--half", "store the network in 16 bits", false),
    { adapter: undefined, device: undefined, json: false },
    { json: { description: "print JSON instead of lines" } },
  );

/** @param data The default, which evaluations do not have. */
const sceneFlags = (each: Command, data?: string): Command =>
  each
    .option(
      "--data <what>",
      `earth, digits, or a folder of pictures and masks${data === undefined ? " (default: as in training)" : ""}`,
      data,
    )
    .option(
      "--scale <x>",
      "size of the pictures to that of their files (default: 0.25 of earth, 0.5 in folders)",
      positiveNumber,
    )
    .option("--validation <percent>", "how much of a folder is held out (default: 10)", percentage)
    .option(
      "--classes <file>",
      "names the classes of a folder's masks, a line each: name,red,green,blue",
    )
    .option(
      "--ignore-label <label>",
      "pixels of a folder's masks that do not count: 255, #000000, or a class of --classes",
    )
    .option(
      "--split <part>",
      "which part of a folder that is divided is held out: val, test (default: val)",
      oneOf(splitNames),
    )
    .option("--canvases <n>", "digits: canvases to learn from (default: 2000)", canvasCount);

const networkFlags = (each: Command): Command =>
  pretrainedFlags(
    each.option(
      "-m, --model <dir>",
      "the --out folder of a training, or a checkpoint",
      "runs/segmentation",
    ),
    "weights of torch or safetensors in milesial's form, in place of --model",
  );

const modelFlags = (each: Command): Command =>
  networkFlags(each).option(
    "--precision <name>",
    "float32, float16, … (default: as the network was trained)",
    precisionName,
  );

/** The most canvases, which are all kept in memory at 8 KiB each. */
const mostCanvases = 200_000;

function canvasCount(text: string): number {
  const count = wholeNumber(1)(text);
  if (count > mostCanvases) throw new InvalidArgumentError(`it must be at most ${mostCanvases}.`);
  return count;
}

function percentage(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value < 100))
    throw new InvalidArgumentError("it must be a number between 0 and 100.");
  return value;
}
