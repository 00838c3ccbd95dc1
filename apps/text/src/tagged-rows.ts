import { DataError, jsonRows } from "@halfstep/data";
import { readTextFile } from "@halfstep/data/node";
import type { OwnData } from "./own-file.js";
import { withNames } from "./parquet/class-names.js";
import { openParquet } from "./parquet/read-parquet.js";

/** Usual names of columns, as data sets of Hugging Face have them; of several the first is meant. */
const usualNames = {
  token: ["tokens", "words"],
  tag: ["ner_tags", "tags", "labels", "pos_tags", "upos"],
} as const;

/** Sentences as lists of words and of tags. */
export interface ListedSentences {
  readonly sentences: readonly {
    readonly words: readonly string[];
    readonly tags: readonly string[];
  }[];
  /** The names of all tags, where the file itself or flags say them. */
  readonly names?: readonly string[] | undefined;
}

/** Whether a file has lists in rows, by its name. */
export const hasLists = ({ data }: Pick<OwnData, "data">): boolean =>
  /\.(jsonl|parquet)$/.test(data);

/**
 * The sentences of a file with a list of words and a list of tags in each row: JSON Lines or Parquet.
 * @throws DataError
 */
export async function listedSentences(own: OwnData): Promise<ListedSentences> {
  const { data: name } = own;
  const isParquet = name.endsWith(".parquet");
  const file = isParquet ? await openParquet(name) : undefined;
  const values = file
    ? undefined
    : jsonRows(await readTextFile(name, own), { name }).map(({ line, value }) => ({
        place: `line ${line}`,
        row: (value ?? {}) as Readonly<Record<string, unknown>>,
      }));
  const columns = file?.columns ?? Object.keys(values?.[0]?.row ?? {});
  const [tokens, tags] = (["token", "tag"] as const).map((column) => {
    const usual: readonly string[] = usualNames[column];
    const asked = own[`${column}Column`]?.toString();
    return asked ?? usual.find((each) => columns.includes(each)) ?? (usual[0] as string);
  }) as [string, string];
  const rows =
    values ??
    (await file?.rows([tokens, tags]))?.map((row, i) => ({ place: `row ${i + 1}`, row })) ??
    [];
  const names = own.labelNames ?? file?.classNames.get(tags);
  const sentences = rows.flatMap(({ place, row }) => {
    const [words, given] = [row[tokens], row[tags]];
    const isPair = isListOf(words, ["string"]) && isListOf(given, ["string", "number", "bigint"]);
    if (!isPair || words.length !== given.length)
      throw new DataError(
        name,
        `${place} needs ${JSON.stringify(tokens)}, a list of words, and ${JSON.stringify(tags)}, a list of as many tags: --token-column and --tag-column name others`,
      );
    const named = names ? (withNames(given, names, { name, place }) as readonly unknown[]) : given;
    // Data sets have rows between documents that are empty.
    if (words.length === 0) return [];
    return [{ words: words as readonly string[], tags: named.map(String) }];
  });
  return { sentences, names };
}

const isListOf = (value: unknown, types: readonly string[]): value is readonly unknown[] =>
  Array.isArray(value) && value.every((each) => types.includes(typeof each));
