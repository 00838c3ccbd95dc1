import type { Command } from "commander";

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
