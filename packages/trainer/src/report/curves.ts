import type { StepMetrics } from "../summary.js";

/** A point of a loss curve. */
export interface LossPoint {
  readonly precision: string;
  readonly step: number;
  readonly loss: number;
}

/** The steps of each precision, in the order in which the precisions first appear. */
export const byPrecision = (
  metrics: readonly StepMetrics[],
): ReadonlyMap<string, readonly StepMetrics[]> => {
  const runs = new Map<string, StepMetrics[]>();
  for (const line of metrics) {
    const run = runs.get(line.precision);
    if (run === undefined) runs.set(line.precision, [line]);
    else run.push(line);
  }
  return runs;
};

/**
 * Finite losses, thinned to at most `most` points a run by averaging neighbours: a page of a hundred thousand points
 * would not open.
 */
export const rawCurve = (metrics: readonly StepMetrics[], most = 1000): LossPoint[] =>
  [...byPrecision(metrics)].flatMap(([precision, run]) => {
    const finite = run.flatMap(({ step, loss }) => (loss === null ? [] : [{ step, loss }]));
    const width = Math.ceil(finite.length / most);
    return Array.from({ length: Math.ceil(finite.length / width) || 0 }, (_, bucket) => {
      const part = finite.slice(bucket * width, (bucket + 1) * width);
      const mean = (of: (point: { step: number; loss: number }) => number): number =>
        part.reduce((sum, point) => sum + of(point), 0) / part.length;
      return {
        precision,
        step: Math.round(mean(({ step }) => step)),
        loss: mean(({ loss }) => loss),
      };
    });
  });

/**
 * Exponential moving averages of each run, without the pull towards zero at the start (the bias correction of Adam,
 * Kingma & Ba 2015).
 * @param halfLife points after which a value counts half
 */
export const smoothCurve = (points: readonly LossPoint[], halfLife: number): LossPoint[] => {
  const decay = 0.5 ** (1 / halfLife);
  const averages = new Map<string, { sum: number; weight: number }>();
  return points.map(({ precision, step, loss }) => {
    const { sum, weight } = averages.get(precision) ?? { sum: 0, weight: 0 };
    const next = { sum: decay * sum + (1 - decay) * loss, weight: decay * weight + (1 - decay) };
    averages.set(precision, next);
    return { precision, step, loss: next.sum / next.weight };
  });
};
