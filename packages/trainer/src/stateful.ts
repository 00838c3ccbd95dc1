import type { Variable } from "@halfstep/tensor";
import { said } from "./option-kinds.js";

/**
 * An object with state in checkpoints: a module, an optimizer, a scaler, an average, a schedule, a run folder. A state is
 * plain data: objects, lists, typed arrays, numbers, strings, booleans and null.
 */
export interface Stateful {
  stateDict(): unknown;
  loadStateDict(state: never): unknown;
}

/** A model for checkpoints: every `Module` of `@halfstep/nn`. */
export interface StatefulModel extends Stateful {
  namedParameters(): Iterable<readonly [path: string, parameter: Variable]>;
}

/** A generator of random numbers whose state is its offset: `Generator` of `@halfstep/tensor`. */
export interface SeededGenerator {
  readonly seed: number;
  offset: number;
}

/**
 * A generator as a part of checkpoints, so that a resumed run draws the same numbers for dropout.
 *
 * @example
 * parts: { model, optimizer, dropout: savedGenerator(generator) }
 */
export const savedGenerator = (generator: SeededGenerator): Stateful => ({
  stateDict: () => ({ seed: generator.seed, offset: generator.offset }),
  loadStateDict({ seed, offset }: SeededGenerator) {
    if (seed !== generator.seed)
      throw new RangeError(
        `the generator was seeded with ${seed}, and this one with ${generator.seed}: use the same seed`,
      );
    if (!Number.isSafeInteger(offset) || offset < 0)
      throw new RangeError(
        `the offset of the generator is ${said(offset)}: it must be a whole number`,
      );
    generator.offset = offset;
  },
});

/**
 * Plain data as a part of checkpoints, for their readers: a model's options, names of classes. Resuming reads it before a
 * run exists, so loading it does nothing.
 *
 * @example
 * parts: { model, optimizer, network: savedData({ width, classes }) }
 */
export const savedData = (data: unknown): Stateful => ({
  stateDict: () => data,
  loadStateDict: () => {},
});
