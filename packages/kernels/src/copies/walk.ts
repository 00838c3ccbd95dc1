/**
 * Elements in the order of their copies: copy i is element `offset` + Σ digit · stride, with the digits of i in the
 * dimensions.
 */
export interface Walk {
  readonly offset: number;
  /** Outermost first. */
  readonly dimensions: readonly WalkedDimension[];
}

/** A dimension of a walk. */
export interface WalkedDimension {
  readonly size: number;
  readonly stride: number;
}

/** Elements along several ranges of steps. */
export interface WalkedRange {
  readonly count: number;
  readonly stride: number;
}

const sizeOf = (dimensions: readonly WalkedDimension[]): number =>
  dimensions.reduce((product, { size }) => product * size, 1);

/** The distance in copies of a step along each dimension. */
const places = (dimensions: readonly WalkedDimension[]): number[] =>
  dimensions.map((_, d) => sizeOf(dimensions.slice(d + 1)));

/** The inverse of a walk; undefined unless the walk reads every element of a contiguous range once. */
export function inverseWalk({ offset, dimensions }: Walk): Walk | undefined {
  const steps = places(dimensions);
  const inverse = dimensions
    .map(({ size, stride }, d) => ({ size, stride: steps[d] as number, place: stride }))
    .sort((a, b) => b.place - a.place);
  const dense = places(inverse);
  if (offset !== 0 || inverse.some(({ place }, d) => place !== dense[d])) return undefined;
  return { offset, dimensions: inverse.map(({ size, stride }) => ({ size, stride })) };
}

/**
 * The elements of the copies start + Σ kⱼ · strideⱼ, for 0 ≤ kⱼ < countⱼ, if these have the form start' + Σ kⱼ · strideⱼ'.
 * Undefined for other forms, and where steps of two ranges would carry from one dimension to another.
 */
export function rangesThrough(
  { offset, dimensions }: Walk,
  start: number,
  ranges: readonly WalkedRange[],
): { readonly start: number; readonly strides: readonly number[] } | undefined {
  const steps = places(dimensions);
  const digitsOf = (copy: number): number[] =>
    dimensions.map(({ size }, d) => {
      const digit = Math.floor(copy / (steps[d] as number));
      return d === 0 ? digit : digit % size;
    });
  const found = (digits: readonly number[]): number =>
    digits.reduce((sum, digit, d) => sum + digit * (dimensions[d] as WalkedDimension).stride, 0);
  const first = digitsOf(start);
  const last = [...first];
  const strides = ranges.map(({ count, stride }) => {
    if (count <= 1) return 0;
    const digits = digitsOf(stride);
    for (const [d, digit] of digits.entries()) last[d] = (last[d] as number) + (count - 1) * digit;
    return found(digits);
  });
  const isInside = dimensions.every(({ size }, d) => (last[d] as number) < size);
  return isInside ? { start: offset + found(first), strides } : undefined;
}

/** The counts after which a range of this stride may reach another dimension. */
export const turnsOf = ({ dimensions }: Walk, stride: number): number[] =>
  places(dimensions).map((step, d) => (step * (dimensions[d] as WalkedDimension).size) / stride);
