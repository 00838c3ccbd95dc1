/** A function from numbers to pixels, with the numbers that its axis names. */
export interface Scale {
  (value: number): number;
  readonly ticks: readonly number[];
}

/** A linear scale, with about `count` round ticks. */
export function linearScale(
  [low, high]: readonly [number, number],
  [start, end]: readonly [number, number],
  count = 5,
): Scale {
  const span = high - low || 1;
  const position = (value: number): number => start + ((value - low) / span) * (end - start);
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(low / step);
  const last = Math.floor(high / step + 1e-9);
  const ticks = Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => (first + i) * step);
  return Object.assign(position, { ticks });
}

/** A logarithmic scale with ticks at powers of two, at most about `count`. */
export function powerScale(
  [low, high]: readonly [number, number],
  [start, end]: readonly [number, number],
  count = 6,
): Scale {
  const [first, last] = [Math.log2(low), Math.log2(high)];
  const position = (value: number): number =>
    start + ((Math.log2(value) - first) / (last - first || 1)) * (end - start);
  const step = Math.max(1, Math.ceil((last - first) / count));
  const from = Math.ceil(first / step);
  const ticks = Array.from(
    { length: Math.max(Math.floor(last / step) - from + 1, 0) },
    (_, i) => 2 ** ((from + i) * step),
  );
  return Object.assign(position, { ticks });
}

/** A logarithmic scale with ticks that few decimal digits write exactly: 1, 2 and 5 times powers of ten, or the powers alone. */
export function decimalScale(
  domain: readonly [number, number],
  range: readonly [number, number],
  count = 6,
): Scale {
  const [low, high] = domain;
  const first = Math.floor(Math.log10(low));
  const powers = Array.from(
    { length: Math.ceil(Math.log10(high)) - first + 1 },
    (_, i) => first + i,
  );
  const ticksOf = (factors: readonly number[], some: readonly number[]): number[] =>
    some
      .flatMap((power) => factors.map((factor) => Number(`${factor}e${power}`)))
      .filter((tick) => tick >= low && tick <= high);
  const step = Math.ceil(powers.length / count);
  const ticks = [
    ticksOf([1, 2, 5], powers),
    ticksOf([1, 3], powers),
    ticksOf([1], powers),
    ticksOf(
      [1],
      powers.filter((power) => power % step === 0),
    ),
  ].find((some) => some.length <= count);
  return Object.assign((value: number) => powerScale(domain, range)(value), { ticks: ticks ?? [] });
}

/**
 * Moves labels apart that would cover each other, in their order, within an interval.
 * @returns positions, in the order of `wanted`.
 */
export function spread(
  wanted: readonly number[],
  distance: number,
  [low, high]: readonly [number, number],
): number[] {
  const order = wanted
    .map((_, i) => i)
    .sort((a, b) => (wanted[a] as number) - (wanted[b] as number));
  const positions = [...wanted];
  let floor = low;
  for (const i of order) {
    positions[i] = Math.max(wanted[i] as number, floor);
    floor = (positions[i] as number) + distance;
  }
  let ceiling = high;
  for (const i of order.toReversed()) {
    positions[i] = Math.min(positions[i] as number, ceiling);
    ceiling = (positions[i] as number) - distance;
  }
  return positions;
}
