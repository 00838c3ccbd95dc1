/** Spread of repeated measurements, in the unit of the samples. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  /** First and third quartile. */
  readonly quartiles: readonly [number, number];
  readonly count: number;
}

/** The value below which a share of the samples lies, interpolated between neighbours as numpy.quantile does. */
export function quantile(samples: readonly number[], share: number): number {
  if (samples.length === 0) throw new RangeError("quantile() needs at least one sample");
  const sorted = [...samples].sort((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const below = sorted[Math.floor(place)] as number;
  const above = sorted[Math.ceil(place)] as number;
  return below + (above - below) * (place - Math.floor(place));
}

export const median = (samples: readonly number[]): number => quantile(samples, 0.5);

export const spreadOf = (samples: readonly number[]): Spread => ({
  median: median(samples),
  least: Math.min(...samples),
  quartiles: [quantile(samples, 0.25), quantile(samples, 0.75)],
  count: samples.length,
});

/** A sample, the round of interleaved repetitions that it belongs to, and the process of its lane, from 0 on. */
export interface Sample {
  readonly process: number;
  readonly round: number;
  readonly milliseconds: number;
  /** CPU time of all threads; undefined where the system does not report it. */
  readonly cpuMilliseconds?: number | undefined;
}

/**
 * The second time divided by the first: the median over the rounds that have both, because other load of the machine
 * affects neighbours in a round equally. Without such rounds it is the ratio of the medians.
 */
export function pairedRatio(ours: readonly Sample[], theirs: readonly Sample[]): number {
  const own = new Map(ours.map(({ round, milliseconds }) => [round, milliseconds]));
  const ratios = theirs.flatMap(({ round, milliseconds }) => {
    const base = own.get(round);
    return base === undefined ? [] : [milliseconds / base];
  });
  if (ratios.length > 0) return median(ratios);
  const middle = (samples: readonly Sample[]) => median(samples.map((s) => s.milliseconds));
  return middle(theirs) / middle(ours);
}

/** Slope of the least-squares line through (log x, log y): the exponent k of y ∝ xᵏ. */
export function logLogSlope(points: readonly (readonly [x: number, y: number])[]): number {
  if (points.length < 2) throw new RangeError("logLogSlope() needs two points or more");
  const logs = points.map(([x, y]) => [Math.log(x), Math.log(y)] as const);
  const mean = (pick: 0 | 1) => logs.reduce((sum, p) => sum + p[pick], 0) / logs.length;
  const [mx, my] = [mean(0), mean(1)];
  let covariance = 0;
  let variance = 0;
  for (const [x, y] of logs) {
    covariance += (x - mx) * (y - my);
    variance += (x - mx) ** 2;
  }
  return covariance / variance;
}

/** The mean of ratios. */
export const geometricMean = (ratios: readonly number[]): number =>
  Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
