import { format, parse } from "node:path";
import { openRuntime, print, say, UsageError } from "@halfstep/trainer/cli";
import { overlay } from "../colours.js";
import { writeMask } from "../masks.js";
import type { PredictCommand } from "../options.js";
import { readPicture, writePng } from "../pictures.js";
import { openSegmenter } from "../saved-model.js";
import { labelsOf, PictureSegmenter } from "../segment.js";

export async function predict(options: PredictCommand): Promise<number> {
  const { pictures, output } = options;
  if (output && output.length !== pictures.length)
    throw new UsageError(
      `--output names ${output.length} files for ${pictures.length} pictures: name one for each, or none`,
    );
  const { runtime, device, close } = await openRuntime({ ...options, onNote: say });
  const opened = await openSegmenter(runtime, options.model, options.precision);
  const { channels, classes } = opened;
  const segmenter = new PictureSegmenter({
    runtime,
    device,
    segmenter: opened,
    half: options.half,
  });
  const results = [];
  for (const [i, path] of pictures.entries()) {
    const whole = await readPicture(path, { channels });
    const scale = options.scale ?? opened.scale;
    const scaled = scale === 1 ? whole : await readPicture(path, { channels, scale });
    const labels = labelsOf(await segmenter.segment(scaled), whole, options.maskThreshold);
    const { height, width } = whole;
    const mask = output?.[i] ?? besides(path, "OUT");
    if (options.save) await writeMask(mask, labels, whole, opened);
    const viz = options.viz ? besides(mask, "VIZ") : undefined;
    if (viz !== undefined) await writePng(viz, overlay(whole, labels, classes.length));
    results.push({
      picture: path,
      ...(options.save && { mask }),
      ...(viz !== undefined && { viz }),
      ...{ height, width },
      shares: sharesOf(labels, classes),
    });
  }
  const usage = await segmenter.usage();
  close();
  say(
    `${usage.samples} ${usage.samples === 1 ? "window" : "windows"} in ${Math.round(usage.milliseconds)} ms · ${usage.parameterBytes} bytes of parameters`,
  );
  print(
    options.json
      ? JSON.stringify({ model: opened.path, predictions: results, usage }, undefined, 2)
      : results
          .map(({ picture, mask, shares }) => `${mask ?? picture}  ${described(shares)}`)
          .join("\n"),
  );
  return 0;
}

/** `a/b.jpg` → `a/b_OUT.png` */
function besides(path: string, what: string): string {
  const { dir, name } = parse(path);
  return format({ dir, name: `${name}_${what}`, ext: ".png" });
}

type Shares = Readonly<Record<string, number>>;

/** The share of the pixels that each class has, from 0 to 1. */
function sharesOf(labels: Uint8Array, classes: readonly string[]): Shares {
  const counts = new Float64Array(classes.length);
  for (const label of labels) counts[label] = (counts[label] as number) + 1;
  return Object.fromEntries(
    classes.map((name, i) => [name, (counts[i] as number) / labels.length] as const),
  );
}

const described = (shares: Shares): string =>
  Object.entries(shares)
    .map(([name, share]) => `${name} ${(100 * share).toFixed(1)} %`)
    .join(" · ");
