import { addHistograms, type ExponentHistogram, exponentHistogram } from "../analysis/histogram.js";
import { recommendScale, type ScaleRecommendation } from "../analysis/recommend-scale.js";
import type { FloatFormat } from "../format.js";
import { CliError } from "./errors.js";
import { type NumberFile, readNumberFile } from "./number-file.js";
import { table } from "./table.js";

export interface FileHistogram {
  readonly path: string;
  readonly file: NumberFile;
  readonly histogram: ExponentHistogram;
}

/** @throws CliError if the file cannot be read or is malformed. */
export function readHistogram(path: string): FileHistogram {
  let histogram = exponentHistogram([]);
  const file = readNumberFile(path, (piece) => {
    histogram = addHistograms(histogram, exponentHistogram(piece));
  });
  return { path, file, histogram };
}

export function histogramAsJson(
  { path, file, histogram }: FileHistogram,
  formats: readonly FloatFormat[],
): string {
  const data = {
    schema: 1,
    path,
    ...file,
    histogram,
    formats: recommendations(histogram, formats),
  };
  return `${JSON.stringify(data, undefined, 2)}\n`;
}

interface Recommendation extends ScaleRecommendation {
  readonly format: string;
}

/** float8e8m0fnu holds scales, so nothing is recommended for it. */
function recommendations(
  histogram: ExponentHistogram,
  formats: readonly FloatFormat[],
): readonly Recommendation[] {
  const elements = formats.filter(({ hasZero }) => hasZero);
  if (elements.length === 0) throw new CliError("float8e8m0fnu is a format of scales: add another");
  return elements.map((format) => ({ format: format.name, ...recommendScale(histogram, format) }));
}

const maxRows = 48;
const barWidth = 50;

export function histogramAsText(
  { path, file, histogram }: FileHistogram,
  formats: readonly FloatFormat[],
): string {
  const { count, zeros, infinities, nans, min, max } = histogram;
  const shape = file.shape.length === 1 ? "" : `, shape (${file.shape.join(", ")})`;
  const title = `${path}: ${file.count} ${file.dtype} numbers${shape}\n`;
  const kinds = `zero ${percent(zeros, count)}, infinite ${percent(infinities, count)}, NaN ${percent(nans, count)}`;
  const range = max === 0 ? "" : `; others from ${short(min)} to ${short(max)}`;
  const rows = recommendations(histogram, formats).map((each) => [
    each.format,
    percent(each.unscaled.overflow, 1),
    percent(each.unscaled.underflow, 1),
    percent(each.unscaled.subnormal, 1),
    `2^${each.exponent}`,
    percent(each.overflow, 1),
    percent(each.underflow, 1),
    percent(each.subnormal, 1),
  ]);
  const head = [
    "format",
    "overflow",
    "to 0",
    "subnormal",
    "scale",
    "overflow",
    "to 0",
    "subnormal",
  ];
  return `${title}${kinds}${range}\n${bars(histogram)}\n${table(head, rows, false)}`;
}

/** A bar for each power of two, the largest first; neighbours share one where there are many. */
function bars({ firstExponent, counts, count }: ExponentHistogram): string {
  const width = Math.ceil(counts.length / maxRows);
  if (width === 0) return "";
  const sums = Array.from({ length: Math.ceil(counts.length / width) }, (_, i) =>
    counts.slice(i * width, (i + 1) * width).reduce((sum, n) => sum + n, 0),
  );
  const most = Math.max(...sums);
  const rows = sums.map((sum, i) => [
    `2^${firstExponent + i * width}`,
    percent(sum, count),
    "#".repeat(Math.ceil((barWidth * sum) / most)),
  ]);
  return table(["from", "share", ""], rows.toReversed(), false);
}

const percent = (part: number, whole: number): string =>
  whole === 0 ? "0 %" : `${Number(((100 * part) / whole).toPrecision(3))} %`;

const short = (value: number): string => String(Number(value.toPrecision(4)));
