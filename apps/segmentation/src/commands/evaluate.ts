import { openRuntime, print, say } from "@halfstep/trainer/cli";
import { baselinesOf } from "../baseline.js";
import { judge } from "../evaluate.js";
import type { EvaluateCommand } from "../options.js";
import { openSegmenter } from "../saved-model.js";
import { readScenes } from "../scenes.js";
import { headline, type Scores } from "../scores.js";

export async function evaluate(options: EvaluateCommand): Promise<number> {
  const { runtime, close } = await openRuntime({ ...options, onNote: say });
  const opened = await openSegmenter(runtime, options.model, options.precision);
  const scenes = await readScenes({ ...options, ...scaleOf(options, opened.scale) });
  const { classes, heldOut } = scenes;
  const judged = await judge({ ...opened, runtime, scenes: heldOut, batchSize: options.batchSize });
  close();
  const baselines = baselinesOf(scenes);
  if (options.json) {
    print(
      JSON.stringify(
        {
          scenes: scenes.name,
          classes,
          model: opened.path,
          step: opened.step,
          ...judged,
          baselines,
        },
        undefined,
        2,
      ),
    );
    return 0;
  }
  const network = { name: `U-Net after ${opened.step} steps, ${opened.precision}`, scores: judged };
  const rows = [...baselines, network];
  const width = Math.max(...rows.map(({ name }) => name.length));
  print(
    [
      head(classes, judged),
      ...rows.map(({ name, scores }) =>
        `${cells(classes, scores)}  ${name.padEnd(width)}`.trimEnd(),
      ),
    ].join("\n"),
  );
  return 0;
}

/** Pictures of a folder are scaled as they were in training. */
const scaleOf = ({ data, scale }: EvaluateCommand, trained: number): { scale?: number } =>
  data === "digits" ? {} : { scale: scale ?? trained };

const head = (classes: readonly string[], scores: Scores): string =>
  [headline(classes, scores).name, "dice", "accuracy"].map((name) => name.padStart(8)).join("  ");

const cells = (classes: readonly string[], scores: Scores): string =>
  [headline(classes, scores).value, scores.dice, scores.accuracy]
    .map((value) => value.toFixed(4).padStart(8))
    .join("  ");
