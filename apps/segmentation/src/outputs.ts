import { realpathSync } from "node:fs";
import { basename, dirname, extname, format, join, parse, resolve } from "node:path";
import { DataError } from "@halfstep/data";
import { UsageError } from "@halfstep/trainer/cli";
import type { PredictCommand } from "./options.js";

/** What is written for a picture. */
export interface Outputs {
  readonly picture: string;
  /** Undefined: no mask is written. */
  readonly mask?: string;
  /** The picture with the classes in colours. */
  readonly viz?: string;
}

/**
 * The files that `predict` writes, checked before it computes anything.
 * @throws UsageError where a file would replace a picture or another result; DataError where a mask's name is not that of a PNG
 */
export function outputsOf({
  pictures,
  output,
  save,
  viz,
}: Pick<PredictCommand, "pictures" | "output" | "save" | "viz">): readonly Outputs[] {
  if (output && output.length !== pictures.length)
    throw new UsageError(
      `--output names ${output.length} files for ${pictures.length} pictures: name one for each, or none`,
    );
  const outputs = pictures.map((picture, i): Outputs => {
    const mask = output?.[i] ?? besides(picture, "OUT");
    return {
      picture,
      ...(save && { mask }),
      ...(viz && { viz: besides(mask, "VIZ") }),
    };
  });
  requireDistinct(outputs);
  return outputs;
}

function requireDistinct(outputs: readonly Outputs[]): void {
  const inputs = new Map(outputs.map(({ picture }) => [realPathOf(picture), picture]));
  const written = new Map<string, string>();
  for (const { picture, mask, viz } of outputs)
    for (const [path, what] of [
      [mask, `the mask of ${picture}`],
      [viz, `the --viz picture of ${picture}`],
    ] as const) {
      if (path === undefined) continue;
      if (extname(path).toLowerCase() !== ".png")
        throw new DataError(path, "cannot be written: let it end in .png");
      const place = realPathOf(path);
      const input = inputs.get(place);
      if (input !== undefined)
        throw new UsageError(`${what} would replace the picture ${input}: name another file by -o`);
      const other = written.get(place);
      if (other !== undefined)
        throw new UsageError(
          `${other} and ${what} would both be ${path}: name a file for each picture by -o`,
        );
      written.set(place, what);
    }
}

/** A path without links and dots. The file need not be there, nor its folders. */
function realPathOf(path: string): string {
  const whole = resolve(path);
  try {
    return realpathSync.native(whole);
  } catch {
    const folder = dirname(whole);
    return folder === whole ? whole : join(realPathOf(folder), basename(whole));
  }
}

/** `a/b.jpg` → `a/b_OUT.png` */
function besides(path: string, what: string): string {
  const { dir, name } = parse(path);
  return format({ dir, name: `${name}_${what}`, ext: ".png" });
}
