import type { Variable } from "@halfstep/tensor";

/**
 * Something whose state a checkpoint holds: a module, an optimizer, a scaler, an average, a schedule, a run folder. A state is
 * plain data: objects, lists, typed arrays, numbers, strings, booleans and null.
 */
export interface Stateful {
  stateDict(): unknown;
  loadStateDict(state: never): unknown;
}

/** A model as a checkpoint needs it: every `Module` of `@halfstep/nn`. */
export interface StatefulModel extends Stateful {
  namedParameters(): Iterable<readonly [path: string, parameter: Variable]>;
}

/** A generator of random numbers whose state is its place: `Generator` of `@halfstep/tensor`. */
export interface SeededGenerator {
  readonly seed: number;
  offset: number;
}

/**
 * A generator as a part of checkpoints, so that dropout goes on with the numbers that would have followed.
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
      throw new RangeError(`the offset of the generator is ${offset}: it must be a whole number`);
    generator.offset = offset;
  },
});

/**
 * Plain data as a part of checkpoints, for whoever opens them: a model's options, names of classes. What is resumed reads it
 * before there is a run, so that loading it does nothing.
 *
 * @example
 * parts: { model, optimizer, network: savedData({ width, classes }) }
 */
export const savedData = (data: unknown): Stateful => ({
  stateDict: () => data,
  loadStateDict: () => {},
});
