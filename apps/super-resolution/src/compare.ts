import { openRuntime } from "@halfstep/trainer/cli";
import { psnr, readPicture, type ShrinkKernel, toBytes } from "./images.js";
import { type Judgement, judge } from "./judge.js";
import type { Stored } from "./options.js";
import type { JudgedPicture } from "./pairs.js";
import { golden, photograph } from "./pretrained.js";
import { type NetworkFlags, openModel } from "./saved-model.js";
import { upscalerOf } from "./upscale.js";

export interface CompareOptions extends NetworkFlags {
  readonly precision: readonly Stored[];
  readonly pictures: readonly JudgedPicture[];
  readonly kernel: ShrinkKernel;
  readonly tile: number;
  readonly adapter?: string | undefined;
  readonly device?: "gpu" | "cpu" | undefined;
  readonly onNote: (line: string) => void;
}

/** The results and costs of a precision, for the package's photograph and the evaluation images. */
export interface Compared {
  readonly precision: Stored;
  /** dB of the bytes of the enlarged photograph to those of its authors' result; null where the network enlarges by another factor. */
  readonly golden: number | null;
  /** dB between the unquantized results and those in float32; null without float32. */
  readonly float32: number | null;
  /** dB between images that were shrunk and enlarged again and their originals. */
  readonly judged: Judgement;
  /** Of all parameters. */
  readonly parameterBytes: number;
  /** Peak memory of the device while the photograph was enlarged; on the CPU, that of the plan. */
  readonly peakBytes: number;
  /** To enlarge the photograph, the second time. */
  readonly milliseconds: number;
}

/** Runs the network in several precisions, each on a device of its own, so that its memory is its own. */
export async function comparePrecisions(options: CompareOptions): Promise<readonly Compared[]> {
  const photo = await readPicture(await photograph());
  const { pixels: expected } = await readPicture(await golden());
  let exact: ArrayLike<number> | undefined;
  const rows: Compared[] = [];
  for (const precision of options.precision) {
    const { runtime, device, close } = await openRuntime(options);
    const model = await openModel(runtime, options);
    const upscaler = upscalerOf(runtime, device, model);
    if (precision !== "float32") upscaler[precision === "float16" ? "half" : "bfloat16"]();
    device?.memory.resetPeak();
    const [values = new Float32Array()] = await upscaler.predict([photo]);
    const first = await upscaler.usage();
    await upscaler.predict([photo]);
    const { milliseconds, parameterBytes, batchBytes, peakBytes } = await upscaler.usage();
    if (precision === "float32") exact = values;
    rows.push({
      precision,
      golden: values.length === expected.length ? psnr(toBytes(values), expected) : null,
      float32: exact ? psnr(values, exact) : null,
      judged: await judge(upscaler, model, options.pictures, options),
      parameterBytes,
      peakBytes: device ? peakBytes : batchBytes + parameterBytes,
      milliseconds: milliseconds - first.milliseconds,
    });
    close();
  }
  return rows;
}

/** The comparison as a table. */
export function comparisonTable(rows: readonly Compared[]): string {
  const decibels = (value: number | null): string =>
    value === null ? "–" : value === Number.POSITIVE_INFINITY ? "equal" : value.toFixed(2);
  const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  const cells = [
    ["", "golden dB", "float32 dB", "judged dB", "cubic dB", "parameters", "peak", "time"],
    ...rows.map((row) => [
      row.precision,
      decibels(row.golden),
      decibels(row.float32),
      decibels(row.judged.network),
      decibels(row.judged.interpolation),
      mebibytes(row.parameterBytes),
      mebibytes(row.peakBytes),
      `${Math.round(row.milliseconds)} ms`,
    ]),
  ];
  const widths = cells[0]?.map((_, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  );
  return cells
    .map((row) => row.map((cell, column) => cell.padStart(widths?.[column] ?? 0)).join("  "))
    .join("\n");
}
