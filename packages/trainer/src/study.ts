/** A comparison of variants of training over several seeds. An app's `src/study.ts` has one as its default export. */
export interface Study {
  /** The name of the app's folder. */
  readonly app: string;
  /** The metric: `{ name: "test accuracy", unit: "%", better: "max" }`. */
  readonly metric: {
    readonly name: string;
    readonly unit: string;
    readonly better: "max" | "min";
  };
  /** The first one is the baseline: "float32". */
  readonly variants: readonly string[];
  /** Every variant is trained from the seeds 0 to `seeds` − 1. */
  readonly seeds: number;
  /** Trains one variant from one seed. It is called in a process of its own. */
  run(variant: string, seed: number): Promise<StudyOutcome>;
}

/** The outcome of one training run. Further numbers may follow. */
export interface StudyOutcome {
  /** In the unit of the study's metric. */
  readonly metric: number;
  /** Loss on the data of the metric, in nats unless the app says otherwise. */
  readonly loss: number;
  readonly wallSeconds: number;
  readonly peakBytes: number;
  readonly skippedSteps: number;
  readonly [extra: string]: number;
}

/** A line of a study's results. */
export interface StudyRun {
  readonly variant: string;
  readonly seed: number;
  /** The machine of the run. */
  readonly machine: string;
  /** Null where the number is not finite, because JSON cannot represent it. */
  readonly outcome: { readonly [Name in keyof StudyOutcome]: number | null };
}

/** Mean of some numbers, with their deviation and the error of the mean. */
export interface Spread {
  readonly count: number;
  readonly mean: number;
  /** Sample standard deviation: NaN for fewer than two. */
  readonly deviation: number;
  /** Standard error of the mean. */
  readonly error: number;
}

/** Mean, sample standard deviation (n − 1) and standard error. */
export function spreadOf(values: readonly number[]): Spread {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const deviation = Math.sqrt(squares / (count - 1));
  return { count, mean, deviation, error: deviation / Math.sqrt(count) };
}

/** The difference of a number between two variants, paired by seed, over the seeds that both have. */
export function pairedDifference(
  runs: readonly StudyRun[],
  variant: string,
  baseline: string,
  of: string,
): Spread {
  const values = (name: string) =>
    new Map(runs.filter((run) => run.variant === name).map((run) => [run.seed, numberOf(run, of)]));
  const others = values(baseline);
  return spreadOf(
    [...values(variant)].flatMap(([seed, value]) => {
      const other = others.get(seed);
      return other === undefined ? [] : [value - other];
    }),
  );
}

/** The runs that a study still lacks, seed by seed. */
export const missingRuns = (
  { variants, seeds }: Pick<Study, "variants" | "seeds">,
  runs: readonly Pick<StudyRun, "variant" | "seed">[],
): readonly { readonly variant: string; readonly seed: number }[] =>
  Array.from({ length: seeds }, (_, seed) => seed)
    .flatMap((seed) => variants.map((variant) => ({ variant, seed })))
    .filter(
      ({ variant, seed }) => !runs.some((run) => run.variant === variant && run.seed === seed),
    );

const numberOf = ({ outcome }: StudyRun, name: string): number => outcome[name] ?? Number.NaN;
