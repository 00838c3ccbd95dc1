import { DataError } from "@halfstep/data";
import { UsageError } from "@halfstep/trainer/cli";
import type { SentenceContext } from "./examples.js";

/** A file with a word a line, its tags in further columns, and empty lines between sentences, as of the CoNLL tasks. */
export interface ColumnsFile {
  readonly data: string;
  /**
   * The number of the column with words, from 1 on, or its name where columns have names. Default: the first; of CoNLL-U the second; of
   * lists their usual name.
   */
  readonly tokenColumn?: number | string | undefined;
  /** As `tokenColumn`. Default: the last; of CoNLL-U the fourth, universal parts of speech; of lists their usual name. */
  readonly tagColumn?: number | string | undefined;
  /** Whether sentences know those around them, up to the ends of their document. */
  readonly documentContext?: boolean | undefined;
}

/** A sentence of such a file. */
export interface ColumnsSentence {
  readonly words: readonly string[];
  readonly tags: readonly string[];
  readonly context?: SentenceContext;
}

/** Whether a file is read by columns: if they are named, or by its name. */
export const hasColumns = ({ data, tokenColumn, tagColumn }: ColumnsFile): boolean =>
  (tokenColumn ?? tagColumn) !== undefined || /\.(conll|conllu|iob|iob2|bio)$/.test(data);

/**
 * The sentences of a file of columns. Lines that begin a document (`-DOCSTART-`) part sentences, and documents. Of CoNLL-U, comments and words without a
 * number of their own (`1-2`, `3.1`) are left out.
 * @throws DataError with the number of the line that has too few columns, or another number than the first where tags are in the last
 */
export function columnSentences(text: string, file: ColumnsFile): readonly ColumnsSentence[] {
  const isUniversal = file.data.endsWith(".conllu");
  const { tokenColumn = isUniversal ? 2 : 1, tagColumn = isUniversal ? 4 : undefined } = file;
  if (tokenColumn === tagColumn)
    throw new UsageError(`--token-column and --tag-column are both ${tokenColumn}`);
  if (typeof tokenColumn === "string" || typeof tagColumn === "string")
    throw new UsageError(
      `--token-column and --tag-column are numbers for ${file.data}, whose columns have no names`,
    );
  const documents: { words: string[]; tags: string[] }[][] = [[]];
  let isOpen = false;
  let first: { readonly line: number; readonly columns: number } | undefined;
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (isUniversal && (line.startsWith("#") || /^\d+[-.]/.test(line))) continue;
    const fields = line.includes("\t") ? line.split("\t") : line.trim().split(/\s+/);
    const isBetween = fields[0] === "-DOCSTART-";
    if (isBetween) documents.push([]);
    if (line.trim() === "" || isBetween) {
      isOpen = false;
      continue;
    }
    const [word, tag] = [fields[tokenColumn - 1], fields[(tagColumn ?? fields.length) - 1]];
    if (fields.length < 2 || !word?.trim() || !tag?.trim())
      throw new DataError(
        file.data,
        `line ${i + 1} has ${fields.length} columns, and needs one with a word and one with its tag: --token-column and --tag-column say which`,
      );
    first ??= { line: i + 1, columns: fields.length };
    // The last column of a shorter line has something else.
    if (tagColumn === undefined && fields.length !== first.columns)
      throw new DataError(
        file.data,
        `line ${i + 1} has ${fields.length} columns, and line ${first.line} has ${first.columns}: complete it, or say by --tag-column which has the tags`,
      );
    const document = documents.at(-1);
    if (!isOpen) document?.push({ words: [], tags: [] });
    isOpen = true;
    document?.at(-1)?.words.push(word.trim());
    document?.at(-1)?.tags.push(tag.trim());
  }
  if (!file.documentContext) return documents.flat();
  return documents.flatMap((document) => {
    const sentences = document.map(({ words }) => words);
    return document.map((sentence, place) => ({ ...sentence, context: { sentences, place } }));
  });
}
