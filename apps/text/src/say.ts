/** To the person: standard output is for results. */
export const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

export const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/** An accuracy as percent. */
export const percent = (share: number): string => `${(100 * share).toFixed(2)} %`;

/** A loss, for each example, word or token. */
export const nats = (loss: number): string => `${loss.toFixed(4)} nats`;

const baselineNames: Readonly<Record<string, string>> = {
  naiveBayes: "naive Bayes",
  mostFrequentTag: "most frequent tag",
  unigramLoss: "unigrams",
};

/** What counting reaches, in a line. */
export const describeBaselines = (baselines: Readonly<Record<string, number>>): string =>
  Object.entries(baselines)
    .map(([name, value]) => {
      const shown = name.endsWith("Loss") ? nats(value) : percent(value);
      return `${baselineNames[name] ?? name} ${shown}`;
    })
    .join(" · ");
