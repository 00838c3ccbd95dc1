import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { csvRows, DataError, permutation, type Row, tsvRows } from "@halfstep/data";
import { readTextFile } from "@halfstep/data/node";

/** Where the labels of images are, besides the folder of the images. */
export interface LabelFlags {
  /** A CSV or TSV file with a header: names of image files, and their labels. */
  readonly labels?: string | undefined;
  /** As `labels`, to test on. Default: one in five of `labels`. */
  readonly testLabels?: string | undefined;
  /** The column of names of files. Default: the first. */
  readonly fileColumn?: string | undefined;
  /** The column of labels, or several with commas between them that have 1 where an image has the label. Default: the second of two. */
  readonly labelColumn?: string | undefined;
}

/** Images, each with any number of labels. */
export interface LabelledFiles {
  readonly files: readonly string[];
  /** [files.length], the place of an image's labels in `sets`. */
  readonly labels: Uint32Array;
  /** The different sets of labels, each [labels]: 1 for those in it, else 0. */
  readonly sets: readonly Uint8Array[];
}

/** Both parts of labelled images, and the names of the labels. */
export interface LabelledSplits {
  readonly classes: readonly string[];
  readonly train: LabelledFiles;
  readonly test: LabelledFiles;
}

/** One in so many images is tested where there is no file to test on. */
const parts = 5;

/** Endings that names in a file may lack. */
const endings: readonly string[] = [
  "",
  ...[".jpg", ".jpeg", ".png", ".webp", ".avif", ".gif", ".tif", ".tiff"].flatMap((ending) => [
    ending,
    ending.toUpperCase(),
  ]),
];

/**
 * The images of a folder, with the labels of `--labels` and `--test-labels`.
 * @throws DataError for a column, an image or a label that is not there
 */
export async function labelledSplits(
  directory: string,
  { labels = "", testLabels, ...columns }: LabelFlags,
): Promise<LabelledSplits> {
  const lines = await linesOf(labels, directory, columns);
  const classes = namesIn(labels, lines);
  if (testLabels !== undefined)
    return {
      classes,
      train: imagesWith(classes, labels, lines),
      test: await labelledTest(directory, { testLabels, ...columns }, classes),
    };
  // The order does not depend on the seed, so that networks are compared on the same images.
  const order = [...permutation(lines.length, 0, 0)];
  const part = (isTest: boolean): LabelledFiles => {
    const places = order.filter((_, i) => (i % parts === 0) === isTest).sort((a, b) => a - b);
    return imagesWith(
      classes,
      labels,
      places.map((place) => lines[place] as Line),
    );
  };
  if (lines.length < parts)
    throw new DataError(
      labels,
      `has ${lines.length} images: one in ${parts} is tested, so give ${parts} or more, or --test-labels`,
    );
  return { classes, train: part(false), test: part(true) };
}

/** The images to test on, all of `--test-labels` or one in five of `--labels`. @throws DataError */
export async function labelledTest(
  directory: string,
  flags: LabelFlags,
  classes: readonly string[],
): Promise<LabelledFiles> {
  const { labels, testLabels, ...columns } = flags;
  if (testLabels !== undefined)
    return imagesWith(classes, testLabels, await linesOf(testLabels, directory, columns, classes));
  const { test, classes: found } = await labelledSplits(directory, flags);
  const place = found.map((name) => classes.indexOf(name));
  const unknown = found.find((_, i) => (place[i] as number) < 0);
  if (unknown !== undefined)
    throw new DataError(
      labels ?? directory,
      `has the label ${JSON.stringify(unknown)}, which is none of ${classes.join(", ")}`,
    );
  const sets = test.sets.map((set) => {
    const moved = new Uint8Array(classes.length);
    for (const [i, has] of set.entries()) moved[place[i] as number] = has;
    return moved;
  });
  return { ...test, sets };
}

/** A line of a file. */
interface Line {
  readonly line: number;
  readonly file: string;
  readonly labels: readonly string[];
}

/** @param known labels that a network has, with which a cell may be a label with spaces */
async function linesOf(
  name: string,
  directory: string,
  { fileColumn, labelColumn }: Pick<LabelFlags, "fileColumn" | "labelColumn">,
  known: readonly string[] = [],
): Promise<readonly Line[]> {
  const text = await readTextFile(name);
  const [header, ...rows] = name.endsWith(".csv")
    ? csvRows(text, { name })
    : tsvRows(text, { name });
  if (!header || rows.length === 0)
    throw new DataError(
      name,
      "has no images: a line with names of columns, and one for each image",
    );
  const file = fileColumn === undefined ? 0 : placeOf("--file-column", fileColumn, header, name);
  const read = labelsReader(header, rows, { name, file, labelColumn, known });
  const seen = new Set<string>();
  return rows.map((row) => {
    const asked = (row.fields[file] as string).trim();
    const path =
      asked === ""
        ? undefined
        : endings
            .map((ending) => resolve(directory, asked + ending))
            .find((each) => existsSync(each));
    if (path === undefined)
      throw new DataError(
        name,
        `line ${row.line} has the image ${JSON.stringify(asked)}, which is not in ${directory}: --file-column says which column has names of files`,
      );
    if (seen.has(path))
      throw new DataError(
        name,
        `line ${row.line} has ${asked} again: put all its labels in a line`,
      );
    seen.add(path);
    return { line: row.line, file: path, labels: read(row) };
  });
}

function labelsReader(
  header: Row,
  rows: readonly Row[],
  {
    name,
    file,
    labelColumn,
    known,
  }: { name: string; file: number; labelColumn: string | undefined; known: readonly string[] },
): (row: Row) => readonly string[] {
  const asked = labelColumn?.split(",").map((each) => each.trim()) ?? [];
  const places = asked.map((each) => placeOf("--label-column", each, header, name));
  if (places.length > 1)
    return ({ line, fields }) =>
      places.flatMap((place, i) => {
        const value = Number(fields[place]);
        // CelebA has −1 for 0.
        if (![0, 1, -1].includes(value))
          throw new DataError(
            name,
            `line ${line} has ${JSON.stringify(fields[place])} in the column ${asked[i]}: 1 is wanted where an image has the label, else 0 or -1`,
          );
        return value === 1 ? [asked[i] as string] : [];
      });
  if (places.length === 0 && header.fields.length !== 2)
    throw new DataError(
      name,
      `has ${header.fields.length} columns (${header.fields.join(", ")}): say by --file-column and --label-column which are meant`,
    );
  const place = places[0] ?? 1 - file;
  const cells = rows.map(({ fields }) => fields[place] as string);
  const separator = ["|", ","].find((each) => cells.some((cell) => cell.includes(each))) ?? /\s+/;
  return ({ fields }) => {
    const cell = (fields[place] as string).trim();
    if (known.includes(cell)) return [cell];
    return cell
      .split(separator)
      .map((label) => label.trim())
      .filter((label) => label !== "");
  };
}

/** The place of a column by its name in the header, or by its number from 1 on. */
function placeOf(flag: string, asked: string, { fields }: Row, name: string): number {
  const named = fields.findIndex((field) => field.trim() === asked);
  const place = named < 0 && /^\d+$/.test(asked) ? Number(asked) - 1 : named;
  if (place >= 0 && place < fields.length) return place;
  throw new DataError(
    name,
    `has no column ${JSON.stringify(asked)} for ${flag}: it has ${fields.length} (${fields.join(", ")})`,
  );
}

/** The names of all labels, by code units. */
function namesIn(name: string, lines: readonly Line[]): readonly string[] {
  const classes = [...new Set(lines.flatMap(({ labels }) => labels))].sort();
  if (classes.length < 2)
    throw new DataError(
      name,
      `has ${classes.length} labels, and two or more are wanted: --label-column says which columns have them`,
    );
  if (2 * classes.length > lines.length)
    throw new DataError(
      name,
      `has ${classes.length} labels for ${lines.length} images, such as ${JSON.stringify(classes[0])}: --label-column says which columns have them`,
    );
  return classes;
}

function imagesWith(
  classes: readonly string[],
  name: string,
  lines: readonly Line[],
): LabelledFiles {
  const places = new Map(classes.map((label, place) => [label, place]));
  const sets: Uint8Array[] = [];
  const known = new Map<string, number>();
  const labels = lines.map((line) => {
    const set = new Uint8Array(classes.length);
    for (const label of line.labels) {
      const place = places.get(label);
      if (place === undefined)
        throw new DataError(
          name,
          `line ${line.line} has the label ${JSON.stringify(label)}, which is none of ${classes.join(", ")}`,
        );
      set[place] = 1;
    }
    const key = set.join("");
    const at = known.get(key) ?? sets.push(set) - 1;
    known.set(key, at);
    return at;
  });
  return { files: lines.map(({ file }) => file), labels: Uint32Array.from(labels), sets };
}
