/** What a rank of a training is told. */
export interface RankSettings {
  /** The folder of the run. */
  readonly out: string;
  /** The folder in which ranks write their process numbers, and the samples of each step. */
  readonly notes: string;
  /** Samples of each rank in a batch. */
  readonly batchSize: number;
  readonly epochs: number;
  readonly resume?: string | undefined;
  /** Seconds within which a collective must end. */
  readonly deadline?: number | undefined;
}

/** The samples that one rank has in one step. */
export interface StepSamples {
  readonly step: number;
  readonly samples: readonly number[];
}

/** Samples of an epoch. */
export const sampleCount = 60;
