import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The path of a file that torch wrote: see `golden/checkpoints.py` and `golden/views.py`. */
export const goldenPath = (name: string): string =>
  fileURLToPath(new URL(`./golden/${name}`, import.meta.url));

/** What torch says of a tensor. */
export interface GoldenTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Of the elements in row-major order, in hexadecimal. */
  readonly bytes: string;
}

/** By file and name, what torch says of the tensors in the files that it wrote. */
export const golden: Readonly<Record<string, Readonly<Record<string, GoldenTensor>>>> =
  Object.assign(
    {},
    ...["checkpoints.json", "views.json"].map((name) =>
      JSON.parse(readFileSync(goldenPath(name), "utf8")),
    ),
  );
