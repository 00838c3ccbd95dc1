import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Summary } from "@halfstep/trainer";
import {
  followTraining,
  openRuntime,
  resumePoint,
  type Settings,
  savedSettings,
} from "@halfstep/trainer/cli";
import { RunFolder, resultsTable, stopSignals } from "@halfstep/trainer/node";
import { samplesPicture } from "../colours.js";
import type { TrainCommand } from "../options.js";
import { writePng } from "../pictures.js";
import { crop, type Scene, type SceneSet } from "../scene.js";
import { readScenes } from "../scenes.js";
import { PictureSegmenter } from "../segment.js";
import { starts } from "../tiles.js";
import { stepsOf, trainUNet } from "../train.js";
import { print, say } from "./say.js";

/** How many held-out tiles the report shows. */
const samples = 6;

export async function train(options: TrainCommand): Promise<number> {
  const stop = stopSignals();
  const scenes = await readScenes(options);
  const folder = new RunFolder(options.out, { onNote: say });
  try {
    const settings = settingsOf(options);
    const checkpoint = await resumePoint({
      resume: options.resume,
      store: folder.checkpoints,
      out: options.out,
      settings,
      onNote: say,
    });
    const { runtime, device, described, close } = await openRuntime({ ...options, onNote: say });
    say(
      `${scenes.name}: ${scenes.train.length} scenes and ${scenes.heldOut.length} held out · ${scenes.classes.length} classes · ${described.adapter} · writing to ${options.out}`,
    );
    const progress = followTraining({
      label: options.precision,
      epochs: options.epochs,
      steps: stepsOf({ ...options, scenes }),
      batchSize: options.batchSize,
      folder,
    });
    const trained = await trainUNet({
      ...options,
      runtime,
      device,
      scenes,
      signal: stop.signal,
      hooks: { progress },
      checkpoints: {
        store: folder.checkpoints,
        parts: { log: folder, settings: savedSettings(settings) },
        every: { steps: options.saveEvery },
        resume: checkpoint,
        onNote: say,
      },
    }).finally(progress.stop);
    if (!trained) {
      close();
      say(`stopped; --resume auto --out ${options.out} goes on from here`);
      return stop.exitCode() ?? 1;
    }
    const { summary: run, segmenter } = trained;
    const picture = await samplesPicture(
      new PictureSegmenter({ runtime, device, segmenter }),
      samplesOf(scenes, options.tile),
      scenes.classes.length,
    );
    await writePng(join(options.out, "samples.png"), picture);
    close();
    const summary: Summary = {
      schema: 1,
      task: "segmentation",
      seed: options.seed,
      device: described,
      runs: [run],
    };
    await folder.finish(summary);
    showSamples(join(options.out, "report.html"));
    print(options.json ? JSON.stringify(summary, undefined, 2) : resultsTable(summary));
    say(`report: ${join(options.out, "report.html")}`);
    return 0;
  } finally {
    folder.close();
  }
}

/** Held-out tiles to look at, from scenes in turn: those with the most pixels of another class than the most frequent one. */
function samplesOf({ heldOut }: SceneSet, tile: number): readonly Scene[] {
  const variety = ({ labels }: Scene): number => {
    const counts = new Map<number, number>();
    for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
    return labels.length - Math.max(...counts.values());
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

/** Adds the picture of samples to a report, beside which it lies. */
function showSamples(path: string): void {
  const report = readFileSync(path, "utf8");
  const section = `<section>
<h2>Held-out samples</h2>
<p>From above: the picture, the truth, the prediction, and in red where they differ.</p>
<figure><a href="samples.png"><img src="samples.png" alt="Held-out samples, truths and predictions"></a></figure>
</section>
`;
  writeFileSync(path, report.replace("</body>", `${section}</body>`));
}

/** What has to be the same when training goes on, by flag. */
function settingsOf(options: TrainCommand): Settings {
  return {
    data: options.data,
    scale: options.scale ?? null,
    validation: options.validation ?? null,
    canvases: options.canvases ?? null,
    precision: options.precision,
    width: options.width,
    bilinear: options.bilinear,
    tile: options.tile,
    optimizer: options.optimizer,
    schedule: options.schedule,
    "weight-decay": options.weightDecay,
    clip: options.clip,
    epochs: options.epochs,
    "max-steps": options.maxSteps ?? null,
    "batch-size": options.batchSize,
    lr: options.lr,
    seed: options.seed,
    "static-loss-scale": options.staticLossScale ?? null,
    "init-scale": options.initScale ?? null,
  };
}
