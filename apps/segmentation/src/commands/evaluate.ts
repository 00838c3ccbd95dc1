import { DataError } from "@halfstep/data";
import type { Runtime } from "@halfstep/tensor";
import { openRuntime, print, say, UsageError } from "@halfstep/trainer/cli";
import { baselinesOf } from "../baseline.js";
import { classLines } from "../class-scores.js";
import { judge } from "../evaluate.js";
import type { EvaluateCommand } from "../options.js";
import { openPretrained } from "../pretrained.js";
import { type OpenedSegmenter, openSegmenter } from "../saved-model.js";
import type { SceneSet } from "../scene.js";
import { isOfApp, readScenes, type SceneFlags } from "../scenes.js";
import { headline, type Scores } from "../scores.js";

export async function evaluate(options: EvaluateCommand): Promise<number> {
  const { runtime, close } = await openRuntime({ ...options, onNote: say });
  const { scenes, ...opened } = await openBoth(runtime, options);
  const { classes, heldOut } = scenes;
  const { confusion: _, ...judged } = await judge({
    ...{ ...opened, runtime, classes, scenes: heldOut, batchSize: options.batchSize },
    ...(options.tile !== undefined && { tile: options.tile }),
  });
  close();
  const baselines = baselinesOf(scenes);
  const { path: model, step } = opened;
  if (options.json) {
    const result = { scenes: scenes.name, classes, model, step, ...judged, baselines };
    print(JSON.stringify(result, undefined, 2));
    return 0;
  }
  const trained = step === 0 ? `U-Net of ${model}` : `U-Net after ${step} steps`;
  const rows = [...baselines, { name: `${trained}, ${opened.precision}`, scores: judged }];
  const width = Math.max(...rows.map(({ name }) => name.length));
  print(
    [
      head(classes, judged),
      ...rows.map(({ name, scores }) =>
        `${cells(classes, scores)}  ${name.padEnd(width)}`.trimEnd(),
      ),
      ...classLines(classes, judged),
    ].join("\n"),
  );
  return 0;
}

/** A network, and scenes with its classes. Pictures of a folder are scaled as they were in training. */
async function openBoth(
  runtime: Runtime,
  options: EvaluateCommand,
): Promise<OpenedSegmenter & { readonly scenes: SceneSet }> {
  const { pretrained: path } = options;
  if (path !== undefined) {
    const scenes = await readScenes(scaled(options, options.data ?? "earth", 0.5));
    const opened = await openPretrained(runtime, { ...options, path, classes: scenes });
    return { ...fitting(opened, scenes), scenes };
  }
  const opened = await openSegmenter(runtime, options.model, options.precision);
  const { maskKind = "grey", scale, trainedOn = "earth" } = opened;
  if (options.data === undefined && !isOfApp(trainedOn))
    throw new UsageError(
      `${options.model} was trained on ${trainedOn}: name what to test it on by --data`,
    );
  const flags = scaled(options, options.data ?? trainedOn, scale);
  const scenes = await readScenes(flags, { ...opened, maskKind });
  return { ...fitting(opened, scenes), scenes };
}

const scaled = (options: EvaluateCommand, data: string, scale: number): SceneFlags =>
  data === "digits" ? { ...options, data } : { ...options, data, scale: options.scale ?? scale };

/** @throws DataError where a network is not for scenes of that kind */
function fitting(opened: OpenedSegmenter, { name, channels, classes }: SceneSet): OpenedSegmenter {
  if (opened.channels !== channels)
    throw new DataError(
      opened.path,
      `is a network for pictures of ${opened.channels} channels, and ${name} has ${channels}`,
    );
  if (opened.classes.length !== classes.length)
    throw new DataError(
      opened.path,
      `is a network for ${opened.classes.length} classes, and ${name} has ${classes.length}`,
    );
  return opened;
}

const head = (classes: readonly string[], scores: Scores): string =>
  [headline(classes, scores).name, "dice", "accuracy"].map((name) => name.padStart(8)).join("  ");

const cells = (classes: readonly string[], scores: Scores): string =>
  [headline(classes, scores).value, scores.dice, scores.accuracy]
    .map((value) => value.toFixed(4).padStart(8))
    .join("  ");
