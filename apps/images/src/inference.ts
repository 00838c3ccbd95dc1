import { existsSync } from "node:fs";
import { readTextFile } from "@halfstep/data/node";
import { ConfusionMatrix, macroF1 as macroF1Of, recipeFor } from "@halfstep/trainer";
import { openRuntime, print, savedSetting, say, UsageError } from "@halfstep/trainer/cli";
import { checkpointIn } from "@halfstep/trainer/node";
import { fileView, mnistDirectory, openTest, testView, zoomOf } from "./data.js";
import { classLines, scoreImages } from "./evaluate.js";
import { sampleOf } from "./images.js";
import { scoreLabelSets } from "./label-sets.js";
import { type NetworkOptions, usualImageSize } from "./model.js";
import type { ExportWeightsCommand, PredictCommand, TrainCommand } from "./options.js";
import { choosePrecision } from "./precision.js";
import { predictImages } from "./predict.js";
import { openPretrained } from "./pretrained.js";
import { openNetwork } from "./saved-network.js";
import { testBatches } from "./train.js";
import { exportOnnx, exportWeights } from "./weights.js";

/** The most classes whose confusion matrix is in the JSON of an evaluation. */
const mostRows = 100;

/** `DIR --evaluate`: tests a trained network, in the precision that flags choose, or else in that of its training. */
export async function evaluate(options: TrainCommand): Promise<number> {
  const { resume, out, limit, zoom } = options;
  const isChosen = options.fp16 || options.optLevel || options.precision;
  const { recipe, warnings } = choosePrecision(options);
  for (const warning of warnings) say(warning);
  const { runtime, close } = await openRuntime({ ...options, onNote: say });
  const from = resume === undefined || resume === "auto" ? out : resume;
  const { pretrained: path } = options;
  if (path === undefined && options.directory === undefined) await requireOwnMnist(from);
  const directory = options.directory ?? mnistDirectory();
  const network =
    path === undefined
      ? await openNetwork(runtime, from, isChosen ? recipe : undefined)
      : await openPretrained(runtime, {
          ...{ path, key: options.key, recipe },
          viewFor: (network) =>
            testView(directory, options.imageSize ?? usualImageSize(network.stem), options),
        });
  const { size } = network.view;
  const view = { ...network.view, ...(zoom !== undefined && zoomOf(size, zoom)) };
  const test = sampleOf(await openTest(directory, view, options), limit, options.seed);
  say(`${test.count} images of ${directory} · ${network.path}, ${network.recipe.name}`);
  const scored = network.view.multiLabel ? scoreLabelSets : scoreImages;
  const tested = await scored({
    ...{ runtime, model: network.model, precision: network.recipe, classes: network.view.classes },
    batches: testBatches({ ...options, test }),
  });
  close();
  const percent = (share: number): string => `${(100 * share).toFixed(2)} %`;
  const { score, counts } = tested;
  const isOfClasses = "classes" in score;
  const title = isOfClasses
    ? `top-1 ${percent(score.accuracy)}${score.top5Accuracy === undefined ? "" : `  top-5 ${percent(score.top5Accuracy)}`}`
    : `micro F1 ${percent(score.microF1)}  all labels right ${percent(score.exactMatch)}`;
  const confusion = counts instanceof ConfusionMatrix ? counts : undefined;
  const macroF1 = isOfClasses ? confusion && macroF1Of(confusion.classScores()) : score.macroF1;
  const rows =
    (confusion?.labels.length ?? 0) > mostRows || !confusion ? {} : { confusion: confusion.rows() };
  print(
    options.json
      ? JSON.stringify(
          {
            model: network.path,
            precision: network.recipe.name,
            ...score,
            macroF1,
            ...(isOfClasses ? rows : { labels: counts?.classScores() }),
          },
          undefined,
          2,
        )
      : [
          `${title}${macroF1 === undefined ? "" : `  macro F1 ${percent(macroF1)}`}  loss ${score.loss.toFixed(4)}  ${score.samples} images`,
          classLines(tested),
        ].join("\n"),
  );
  return 0;
}

/** @throws UsageError for a network that was trained on other images than the app's, which the app's say nothing about */
async function requireOwnMnist(from: string): Promise<void> {
  const trainedOn = savedSetting(await checkpointIn(from), "directory");
  if (trainedOn !== undefined)
    throw new UsageError(
      `${from} was trained on ${trainedOn}: name the folder that it is to be tested on`,
    );
}

/** `predict IMAGE…` */
export async function predict(options: PredictCommand): Promise<number> {
  const { runtime, device, close } = await openRuntime({ ...options, onNote: say });
  const { pretrained: path } = options;
  const network =
    path === undefined
      ? await openNetwork(runtime, options.model)
      : await openPretrained(runtime, {
          ...{ path, key: options.key, recipe: recipeFor("float32") },
          viewFor: async (network) =>
            fileView(
              path,
              await classNames(options, network),
              options.imageSize ?? usualImageSize(network.stem),
              options,
            ),
        });
  const { predictions, usage } = await predictImages(network, options.files, {
    ...options,
    ...{ runtime, device },
  });
  close();
  print(
    options.json
      ? JSON.stringify({ model: network.path, predictions, usage }, undefined, 2)
      : predictions
          .map(
            ({ file, classes }) =>
              `${file}: ${classes.map(({ name, probability }) => `${name} ${(100 * probability).toFixed(1)} %`).join(", ") || "no label"}`,
          )
          .join("\n"),
  );
  return 0;
}

/** The names of classes that were asked for, or numbers. */
async function classNames(
  { classes }: Pick<PredictCommand, "classes">,
  network: NetworkOptions,
): Promise<readonly string[]> {
  if (classes === undefined) return Array.from({ length: network.classes ?? 0 }, (_, i) => `${i}`);
  const text = existsSync(classes) ? await readTextFile(classes) : classes.replaceAll(",", "\n");
  return text
    .split(/\r?\n/)
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

/** `export FILE` */
export async function exportNetwork({
  file,
  model,
  onnx,
  ...place
}: ExportWeightsCommand): Promise<number> {
  const { runtime, close } = await openRuntime({ ...place, onNote: say });
  const network = await openNetwork(runtime, model, recipeFor("float32"));
  if (onnx) await exportOnnx(network, file, { onnx });
  else await exportWeights(network, file);
  close();
  print(`${network.path} as ${file}`);
  return 0;
}
