import { join } from "node:path";
import { loadPretrained, recipeFor } from "@halfstep/trainer";
import {
  classWeightsOf,
  noteUnusedScale,
  openRun,
  readPretrained,
  type Settings,
  say,
  settingsOf,
} from "@halfstep/trainer/cli";
import { classSections, type ReportSection } from "@halfstep/trainer/report";
import { classLines } from "../class-scores.js";
import { coloursOf, samplesPicture } from "../colours.js";
import { ignored } from "../masks.js";
import type { TrainCommand } from "../options.js";
import { writePng } from "../pictures.js";
import { head, startingPoint } from "../pretrained.js";
import { crop, describeClasses, pixelsOf, type Scene, type SceneSet } from "../scene.js";
import { readScenes } from "../scenes.js";
import { PictureSegmenter } from "../segment.js";
import { starts } from "../tiles.js";
import { stepsOf, trainUNet } from "../train.js";

/** Number of held-out tiles in the report. */
const samples = 6;

export async function train(options: TrainCommand): Promise<number> {
  const scenes = await readScenes(options);
  const classWeights = await classWeightsOf(options, {
    labels: scenes.classes,
    counts: pixelsOf(scenes.train, scenes.classes.length),
  });
  noteUnusedScale([options.precision], options, say);
  const given = await readPretrained(options);
  const start = given && startingPoint(given, scenes.channels);
  const { width = 8, bilinear = false } = start ?? options;
  const network = { width, bilinear, encoding: start?.encoding };
  const recipe = recipeFor(options.precision);
  using run = await openRun({
    ...options,
    task: "segmentation",
    settings: settings({ ...options, ...network }),
    dataFacts: { classes: scenes.classes, "training scenes": scenes.train.length },
  });
  say(
    `${scenes.name}: ${scenes.train.length} scenes and ${scenes.heldOut.length} held out · ${scenes.classes.length} classes · ${run.described.adapter} · writing to ${options.out}`,
  );
  for (const line of describeClasses(scenes)) say(line);
  const context = run.follow({
    label: options.precision,
    epochs: options.epochs,
    steps: stepsOf({ ...options, scenes }),
    batchSize: options.batchSize,
  });
  const trained = await trainUNet({
    ...{ ...options, ...context, ...network, classWeights, scenes },
    prepare: (model) => start && loadPretrained(model, { ...start, head, recipe, onNote: say }),
  });
  if (!trained) return run.finish(undefined);
  const picture = await samplesPicture(
    new PictureSegmenter({ ...context, segmenter: trained.segmenter }),
    samplesOf(scenes, options.tile),
    coloursOf(scenes),
  );
  await writePng(join(options.out, "samples.png"), picture);
  return run.finish(trained.summary, {
    lines: classLines(scenes.classes, trained.judged).join("\n"),
    sections: [samplesSection, ...classSections(trained.judged.confusion, { iou: true })],
  });
}

/** The section of the report with the picture. */
const samplesSection: ReportSection = {
  title: "Held-out samples",
  html: `<p>From above: the picture, the truth, the prediction, and in red where they differ.</p>
<figure><a href="samples.png"><img src="samples.png" alt="Held-out samples, truths and predictions"></a></figure>`,
};

/** Held-out tiles for the report, alternating between scenes: those with the most pixels outside the most frequent class. */
function samplesOf({ heldOut }: SceneSet, tile: number): readonly Scene[] {
  const variety = ({ labels }: Scene): number => {
    const counts = new Map<number, number>();
    for (const label of labels)
      if (label !== ignored) counts.set(label, (counts.get(label) ?? 0) + 1);
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
    return total - Math.max(0, ...counts.values());
  };
  const ranked = heldOut.map((scene) =>
    tilesIn(scene, tile).sort((a, b) => variety(b) - variety(a)),
  );
  const inTurn = ranked.flatMap((tiles, i) => tiles.map((each, rank) => ({ each, rank, i })));
  inTurn.sort((a, b) => a.rank - b.rank || a.i - b.i);
  return inTurn.slice(0, samples).map(({ each }) => each);
}

const tilesIn = (scene: Scene, tile: number): Scene[] =>
  starts(scene.height, tile).flatMap((y) =>
    starts(scene.width, tile).map((x) => crop(scene, { x, y, width: tile, height: tile })),
  );

/** Settings that must be the same in a resumed run, by flag. */
function settings(options: TrainCommand): Settings {
  return settingsOf(options, [
    "data",
    "scale",
    "validation",
    "canvases",
    "classes",
    "ignoreLabel",
    "split",
    "precision",
    "pretrained",
    "key",
    "width",
    "bilinear",
    "tile",
    "optimizer",
    "schedule",
    "weightDecay",
    "clip",
    "classWeights",
    "labelSmoothing",
    "epochs",
    "maxSteps",
    "batchSize",
    "lr",
    "seed",
    "staticLossScale",
    "initScale",
  ]);
}
