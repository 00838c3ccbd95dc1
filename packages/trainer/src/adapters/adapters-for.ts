import type { Recipe } from "@halfstep/autocast";
import { Lora, type Module } from "@halfstep/nn";

/** Settings of low-rank adapters, as flags have them. */
export interface AdapterSettings {
  /** Rank of the adapters. Undefined: the whole model is trained. */
  readonly lora?: number | undefined;
  /** Default: the rank. */
  readonly loraAlpha?: number | undefined;
  /** The layers that have adapters, by the ends of their names in torch. */
  readonly loraTargets: readonly string[];
}

/** What an app says about its adapters. */
export interface AdapterOptions {
  /** The recipe that was applied to the model. */
  readonly recipe: Recipe;
  readonly seed: number;
  /** Modules that are trained whole: a new head. Default: none. */
  readonly trained?: readonly string[] | undefined;
}

/**
 * The adapters that settings ask for, on a frozen model; undefined if they ask for none. The model's linear layers are kept in the dtype
 * that the recipe rounds their weights to in every step, which changes no bit and halves their memory.
 * @throws RangeError where a target is no linear layer of the model
 */
export function adaptersFor(
  model: Module,
  { lora, loraAlpha, loraTargets }: AdapterSettings,
  { recipe, seed, trained }: AdapterOptions,
): Lora | undefined {
  if (lora === undefined) return undefined;
  const { compute } = recipe;
  const frozen = compute === "float16" || compute === "bfloat16" ? compute : undefined;
  return new Lora(model, {
    ...{ rank: lora, alpha: loraAlpha, targets: loraTargets, trained, seed, frozen },
  });
}
