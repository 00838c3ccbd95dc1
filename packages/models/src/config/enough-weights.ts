import type { StateDict } from "@halfstep/nn";
import { ConfigError } from "./config-error.js";

/** A model that a configuration describes. */
export interface DescribedModel {
  /** For messages: "a BERT". */
  readonly name: string;
  /** As the `parameterCount` of its class has it. */
  readonly parameters: number;
  /** The file that describes it. */
  readonly source: string;
}

/**
 * Refuses a configuration that describes a model of more than twice its weights. Making a model allocates memory for all its parameters, so
 * a tiny file could exhaust memory: call this before a model is made from untrusted options. Of a smaller excess, loading lists what is missing.
 *
 * @throws ConfigError
 * @example
 * requireEnoughWeights(weights, { name: "a GPT-2", parameters: GPT.parameterCount(options), source: "gpt2/config.json" });
 */
export function requireEnoughWeights(
  weights: StateDict,
  { name, parameters, source }: DescribedModel,
): void {
  const given = Object.values(weights).reduce((sum, { data }) => sum + data.length, 0);
  // Negated so that NaN is refused.
  if (!(parameters <= 2 * given))
    throw new ConfigError(
      source,
      `describes ${name} of ${parameters} parameters, and its weights have ${given}: restore the one or the other`,
    );
}
