import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { balancedWeights } from "../classification/class-balance.js";
import { UsageError } from "./program.js";
import { fraction } from "./values.js";

/** The flags of training a classifier. */
export interface ClassFlags {
  /** "balanced", or a file of weights. Undefined: all examples count alike. */
  readonly classWeights?: string | undefined;
  /** Share of the target that is spread over all classes. */
  readonly labelSmoothing: number;
}

/** Adds the flags of training a classifier to a command. */
export const classFlags = (each: Command): Command =>
  each
    .option(
      "--class-weights <balanced|file>",
      "weights of classes in the loss: balanced, or a file with a line name,weight for each class",
    )
    .option("--label-smoothing <part>", "of the target, spread over all classes", fraction, 0);

/** Classes with their numbers of training examples. */
export interface CountedClasses {
  readonly labels: readonly string[];
  readonly counts: ArrayLike<number>;
}

/** The most bytes of a file of weights. */
const mostBytes = 2 ** 20;

/**
 * The weights of classes that `--class-weights` asks for, in the order of the labels; undefined without the flag.
 * @param balance weights that make the classes count alike. Default: {@link balancedWeights}
 * @throws UsageError for a file that cannot be read, and for one that does not have exactly one weight for each class
 *
 * @example
 * const weights = await classWeightsOf(options, { labels: ["ham", "spam"], counts: [900, 100] });
 */
export async function classWeightsOf(
  { classWeights: asked }: Pick<ClassFlags, "classWeights">,
  { labels, counts }: CountedClasses,
  balance: (counts: ArrayLike<number>) => Float32Array = balancedWeights,
): Promise<Float32Array | undefined> {
  if (asked === undefined) return undefined;
  if (asked === "balanced") return balance(counts);
  const refuse = (problem: string): never => {
    throw new UsageError(`--class-weights ${asked}: ${problem}`);
  };
  const bytes = await readFile(asked).catch((error: NodeJS.ErrnoException) =>
    refuse(`cannot be read (${error.code ?? error.message}); give a file, or balanced`),
  );
  if (bytes.length > mostBytes) refuse(`has ${bytes.length} bytes, and a line a class is wanted`);
  const weights = new Map<string, number>();
  for (const [i, line] of bytes.toString("utf8").split(/\r?\n/).entries()) {
    if (line.trim() === "") continue;
    // A name may have what separates fields, but a number does not.
    const [, name = "", number = ""] = /^(.*?)\s*[,;\t ]\s*([^,;\s]+)\s*$/.exec(line) ?? [];
    const weight = number === "" ? Number.NaN : Number(number);
    if (i === 0 && Number.isNaN(weight) && !labels.includes(name.trim())) continue;
    if (!(weight >= 0) || weight === Number.POSITIVE_INFINITY)
      refuse(`line ${i + 1} is no name,weight with a weight from 0 on`);
    if (!labels.includes(name.trim()))
      refuse(
        `line ${i + 1} has the class ${JSON.stringify(name.trim())}, which is none of ${labels.join(", ")}`,
      );
    if (weights.has(name.trim())) refuse(`line ${i + 1} has ${name.trim()} again`);
    weights.set(name.trim(), weight);
  }
  return Float32Array.from(
    labels,
    (label) => weights.get(label) ?? refuse(`has no line for the class ${JSON.stringify(label)}`),
  );
}
