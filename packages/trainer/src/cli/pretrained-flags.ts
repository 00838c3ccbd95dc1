import type { Command } from "commander";
import type { PretrainedWeights } from "../weights/load-pretrained.js";
import { readWeights } from "../weights/read-weights.js";

/** The flags of weights of others. */
export interface PretrainedFlags {
  /** A safetensors file, a checkpoint of torch, or a folder with one. */
  readonly pretrained?: string;
  /** Where the weights lie in a checkpoint of torch, as a dotted path of keys. */
  readonly key?: string;
}

/**
 * Adds `--pretrained` and `--key` to a command.
 * @param description of `--pretrained`
 */
export const pretrainedFlags = (each: Command, description: string): Command =>
  each
    .option("--pretrained <path>", description)
    .option(
      "--key <keys>",
      "where the weights lie in a checkpoint of torch, such as ema.state_dict (default: under the usual names)",
    );

/**
 * Reads the weights that the flags name, for `loadPretrained`; undefined where they name none.
 * @throws as `readWeights`
 */
export async function readPretrained({
  pretrained: source,
  key,
}: PretrainedFlags): Promise<Pick<PretrainedWeights, "weights" | "source"> | undefined> {
  return source === undefined ? undefined : { source, weights: await readWeights(source, { key }) };
}
