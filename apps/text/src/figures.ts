import type { RunSummary } from "@halfstep/trainer";

/** An accuracy as percent. */
export const percent = (share: number): string => `${(100 * share).toFixed(2)} %`;

/** A loss, for each example, word or token. */
export const nats = (loss: number): string => `${loss.toFixed(4)} nats`;

/** The unit of losses in reports; the focal loss is a weighted cross-entropy in nats. */
export const lossUnitOf = ({
  focal,
}: {
  readonly focal: number;
}): { readonly lossUnit?: string } => (focal > 0 ? {} : { lossUnit: "nats" });

/** Names of figures besides accuracy and loss: those of models, and baselines. */
const figureNames: Readonly<Record<string, string>> = {
  macroF1: "macro F1",
  entityF1: "entity F1",
  microF1: "micro F1",
  exactMatch: "all labels right",
  naiveBayes: "naive Bayes",
  mostFrequentTag: "most frequent tag",
  unigramLoss: "unigrams",
};

/** The baselines in a line. */
export const describeBaselines = (baselines: Readonly<Record<string, number>>): string =>
  Object.entries(baselines)
    .map(([name, value]) => {
      const shown = name.endsWith("Loss") ? nats(value) : percent(value);
      return `${figureNames[name] ?? name} ${shown}`;
    })
    .join(" · ");

/** The result of a test (the mean of several), next to the baselines. */
export function describeTests(runs: readonly Pick<RunSummary, "test">[]): string {
  const mean = (name: string): number =>
    runs.reduce((sum, { test }) => sum + (test[name] ?? Number.NaN), 0) / runs.length;
  const { loss: _, accuracy: __, ...baselines } = runs[0]?.test ?? { loss: Number.NaN };
  return [
    `accuracy ${percent(mean("accuracy"))}`,
    `loss ${nats(mean("loss"))}`,
    ...Object.keys(baselines).map((name) => describeBaselines({ [name]: mean(name) })),
  ].join(" · ");
}

/** The share of texts that halves left to float32. */
export const describeClose = (close: number, texts: number): string =>
  `${close.toLocaleString("en")} of ${texts.toLocaleString("en")} texts were close and were decided in float32`;
