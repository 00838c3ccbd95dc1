import type { Runtime } from "@halfstep/tensor";
import { openRuntime, print, say, UsageError } from "@halfstep/trainer/cli";
import { readClassTable } from "../class-table.js";
import { coloursOf, overlay } from "../colours.js";
import { type MaskShown, writeMask } from "../masks.js";
import type { PredictCommand } from "../options.js";
import { outputsOf } from "../outputs.js";
import { readPicture, writePng } from "../pictures.js";
import { openPretrained } from "../pretrained.js";
import { type OpenedSegmenter, openSegmenter } from "../saved-model.js";
import { labelsOf, PictureSegmenter } from "../segment.js";

export async function predict(options: PredictCommand): Promise<number> {
  const outputs = outputsOf(options);
  const { runtime, device, close } = await openRuntime({ ...options, onNote: say });
  const opened = await open(runtime, options);
  const { channels, classes, maskValues } = opened;
  const colours = coloursOf(opened);
  const shown: MaskShown = options.palette
    ? { maskKind: "palette", maskValues: maskValues.map((_, i) => i), palette: colours }
    : opened;
  const segmenter = new PictureSegmenter({
    runtime,
    device,
    segmenter: opened,
    half: options.half,
  });
  const results = [];
  for (const { picture, mask, viz } of outputs) {
    const whole = await readPicture(picture, { channels });
    const scale = options.scale ?? opened.scale;
    const scaled = scale === 1 ? whole : await readPicture(picture, { channels, scale });
    const labels = labelsOf(await segmenter.segment(scaled), whole, options.maskThreshold);
    const { height, width } = whole;
    if (mask !== undefined) await writeMask(mask, labels, whole, shown);
    if (viz !== undefined) await writePng(viz, overlay(whole, labels, colours));
    results.push({
      ...{ picture, mask, viz },
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

/** The network of a training, or of someone else's weights. @throws UsageError for flags of the other kind */
async function open(runtime: Runtime, options: PredictCommand): Promise<OpenedSegmenter> {
  const { model, precision, pretrained: path, classes } = options;
  if (path !== undefined) {
    const table = classes === undefined ? undefined : await readClassTable(classes);
    return openPretrained(runtime, { ...options, path, classes: table });
  }
  if (classes !== undefined)
    throw new UsageError("--classes is of --pretrained: networks of this program have names");
  return openSegmenter(runtime, model, precision);
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
