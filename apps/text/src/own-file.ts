import type { ColumnsFile } from "./columns.js";

/** A custom file, with the options of reading it. */
export interface OwnData extends ColumnsFile {
  readonly data: string;
  /** A file to test on, in place of a part of `data`. */
  readonly testData?: string | undefined;
  /** Default: UTF-8, or UTF-16 with its mark. */
  readonly encoding?: string | undefined;
  /**
   * The column's name in the header, or its number from 1 on. Default: the second, or the header's usual name for text.
   */
  readonly textColumn?: string | undefined;
  /** The column of the second text of a pair, as `textColumn`. Default: there are no pairs. */
  readonly textPairColumn?: string | undefined;
  /**
   * As `textColumn`. Default: the first, or the header's usual name for labels. Where a text may have several labels: columns with commas
   * between them, one for each label, with 1 where the text has it.
   */
  readonly labelColumn?: string | undefined;
  /** The names of labels that the file has as numbers from 0 on. Default: the numbers. */
  readonly labelNames?: readonly string[] | undefined;
  /** Whether a text may have any number of labels. */
  readonly multiLabel?: boolean | undefined;
  /** Whether the first line names the columns. Default: true if it has usual names. */
  readonly header?: boolean | undefined;
  /** The allowed labels. Default: all labels of the file. */
  readonly labels?: readonly string[] | undefined;
}
