import type { Command } from "commander";
import type { AdapterSettings } from "../adapters/adapters-for.js";
import { UsageError } from "./program.js";
import { listOf, positiveNumber, wholeNumber } from "./values.js";

/** The linear layers of a kind of model, by the ends of their names in torch. */
export interface LoraLayers {
  readonly layers: readonly string[];
  /** Those that have adapters unless others are named. */
  readonly targets: readonly string[];
}

/** Adds the flags of training low-rank adapters (`AdapterSettings`) to a command. */
export const loraFlags = (each: Command, { layers, targets }: LoraLayers): Command =>
  each
    .option("--lora <rank>", "train low-rank adapters of --pretrained alone", wholeNumber(1))
    .option("--lora-alpha <x>", "their scale times the rank (default: the rank)", positiveNumber)
    .option(
      "--lora-targets <names>",
      `the layers that have them: ${layers.join(", ")}`,
      listOf(layers, "layer"),
      targets,
    );

/** Refuses adapters without the model that they adapt. @throws UsageError */
export function requireLoraBase({
  lora,
  pretrained,
}: Pick<AdapterSettings, "lora"> & { readonly pretrained?: string | undefined }): void {
  if (lora !== undefined && pretrained === undefined)
    throw new UsageError("--lora adapts a model that is there: name its folder by --pretrained");
}

/** Adds the flag of using adapters of PEFT's, which were trained elsewhere or written by this program. */
export const peftFlag = (each: Command): Command =>
  each.option("--peft <dir>", "a folder of PEFT's adapters, which are added to the model");
