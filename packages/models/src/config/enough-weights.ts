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
 * Refuses a configuration that describes a larger model than its weights are of. A model is made of memory for all of its parameters,
 * so that a file of a few bytes could ask for all that there is: call this before a model is made by options from outside.
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
  // What is no number is not enough, either.
  if (!(parameters <= given))
    throw new ConfigError(
      source,
      `describes ${name} of ${parameters} parameters, and its weights have ${given}: restore the one or the other`,
    );
}
