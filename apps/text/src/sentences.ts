import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import type { Labelled } from "./examples.js";

export const sentenceClasses: readonly string[] = ["negative", "positive"];

/**
 * The UCI Sentiment Labelled Sentences (Kotzias et al. 2015), 1,000 each of IMDb, Yelp and Amazon, as the package `sentiment` has
 * them. Of equal sentences only the first is kept.
 * @param directory the folder of the three JSON files
 * @throws DataError where a file is missing or has another content than expected
 */
export async function readSentences(directory: string): Promise<readonly Labelled[]> {
  const sentences = new Map<string, Labelled>();
  for (const name of ["imdb", "yelp", "amazon"]) {
    const path = join(directory, `${name}.json`);
    const rows = await rowsOf(path);
    for (const [i, row] of rows.entries()) {
      const { text, class: label } = (row ?? {}) as { text?: unknown; class?: unknown };
      // Each file ends with a row that has no class.
      if (label === null && i === rows.length - 1) continue;
      if (typeof text !== "string" || (label !== 0 && label !== 1))
        throw new DataError(path, `row ${i + 1} needs a text and a class of 0 or 1`);
      if (!sentences.has(text.trim())) sentences.set(text.trim(), { text: text.trim(), label });
    }
  }
  return [...sentences.values()];
}

async function rowsOf(path: string): Promise<readonly unknown[]> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new DataError(path, `cannot be read (${error.code ?? error.message})`);
  });
  let rows: unknown;
  try {
    rows = JSON.parse(text);
  } catch (error) {
    throw new DataError(path, `is no JSON (${(error as Error).message})`);
  }
  if (!Array.isArray(rows)) throw new DataError(path, "is no list of sentences");
  return rows;
}
