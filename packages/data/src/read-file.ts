import { constants } from "node:buffer";
import { type DecodeTextOptions, decodeText } from "./decode-text.js";
import { DataError } from "./error.js";
import { fileBytes } from "./file-bytes.js";

/**
 * The text of a file: see `decodeText`.
 * @throws DataError where it cannot be read, is no text in its encoding, or is longer than a string can be
 * @throws RangeError for an unknown encoding
 *
 * @example
 * const rows = readTsv(await readTextFile("reviews.tsv", { encoding: "latin1" }), { name: "reviews.tsv" });
 */
export const readTextFile = async (
  path: string,
  { encoding }: Pick<DecodeTextOptions, "encoding"> = {},
): Promise<string> =>
  decodeText(await fileBytes(path, { most: constants.MAX_STRING_LENGTH }), {
    name: path,
    encoding,
  });

/** No configuration is longer, and no vocabulary of a published tokenizer half as long. */
const longestJson = 2 ** 26;

/**
 * The value of a JSON file that others made. Its length is checked before it is read.
 * @param mostBytes default 64 MiB
 * @throws DataError where it cannot be read, is longer than that, or is no JSON in UTF-8
 */
export async function readJsonFile(
  path: string,
  { mostBytes = longestJson }: { readonly mostBytes?: number } = {},
): Promise<unknown> {
  const text = decodeText(await fileBytes(path, { most: mostBytes }), { name: path });
  try {
    return JSON.parse(text);
  } catch (error) {
    // The message of the engine may quote line ends.
    const reason = (error as Error).message.replace(/\s+/g, " ");
    throw new DataError(path, `is no JSON (${reason}): restore it, or download it again`);
  }
}
