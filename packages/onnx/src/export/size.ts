/** The size of a dimension: a factor times the product of named axes; unknown where it depends on these in another way. */
export interface Size {
  readonly factor: number;
  /** Names of axes of inputs. Empty for a constant. */
  readonly axes: readonly string[];
  readonly isKnown: boolean;
}

/** An axis of an input whose size may change, with the size that it has in each trace. Each trace changes one axis at most. */
export interface NamedAxis {
  readonly name: string;
  readonly sizes: readonly number[];
}

/** A constant size. */
export const constantSize = (factor: number): Size => ({ factor, axes: [], isKnown: true });

/** Whether a size is the same in all runs. */
export const isConstant = ({ axes, isKnown }: Size): boolean => isKnown && axes.length === 0;

/** Whether two sizes are equal in all runs. */
export const isSameSize = (a: Size, b: Size): boolean =>
  a.isKnown && b.isKnown && a.factor === b.factor && a.axes.join() === b.axes.join();

/** The size that a number is in each of some traces. */
export function sizeOf(numbers: readonly number[], axes: readonly NamedAxis[]): Size {
  const [first = 0] = numbers;
  const moved = axes.filter(({ sizes }) =>
    numbers.some((number, t) => number !== first && sizes[t] !== sizes[0]),
  );
  const productIn = (t: number): number =>
    moved.reduce((product, { sizes }) => product * (sizes[t] as number), 1);
  const factor = first / productIn(0);
  const isKnown =
    Number.isInteger(factor) && numbers.every((number, t) => number === factor * productIn(t));
  return { factor, axes: moved.map(({ name }) => name), isKnown };
}
