import { bytesOf, requireOptions } from "./checks.js";
import { DataError } from "./error.js";

/** Options of decoding text. */
export interface DecodeTextOptions {
  /** For messages. Default "text". */
  readonly name?: string | undefined;
  /**
   * A label of the Encoding Standard: "latin1" (which is windows-1252 there), "windows-1251", "shift_jis", "utf-16le" … Default: UTF-8, or
   * UTF-16 where the bytes begin with its byte order mark.
   */
  readonly encoding?: string | undefined;
}

/**
 * Decodes bytes as text, without a byte order mark. Nothing is replaced: bytes that are invalid in the encoding are an error.
 * So are characters with number 0, which occur in UTF-16 files without a mark and in binary files.
 *
 * @throws DataError with the line and the byte that is wrong, and what to do
 * @throws RangeError for an unknown encoding; TypeError for what are no bytes
 *
 * @example
 * const rows = readTsv(decodeText(bytes, { name: "reviews.tsv", encoding: "latin1" }), { name: "reviews.tsv" });
 */
export function decodeText(
  bytes: ArrayBufferLike | Uint8Array,
  options: DecodeTextOptions = {},
): string {
  requireOptions("decodeText", options, ["name", "encoding"]);
  const { name = "text", encoding } = options;
  const file = bytesOf("decodeText", bytes);
  const decoder = new TextDecoder(encoding ?? encodingOfMark(file), { fatal: true });
  let text: string;
  try {
    text = decoder.decode(file);
    // Node 20 leaves control characters there, unlike browsers.
    if (decoder.encoding === "windows-1252")
      text = text.replace(
        /[\u0080-\u009f]/g,
        (control) => windows1252[control.charCodeAt(0) - 0x80] as string,
      );
  } catch {
    throw new DataError(name, problemOf(file, decoder.encoding, encoding !== undefined));
  }
  const zero = text.indexOf("\0");
  if (zero < 0) return text;
  const line = text.slice(0, zero).split("\n").length;
  throw new DataError(
    name,
    `line ${line} has a character of the number 0, so it is no text in ${nameOf(decoder.encoding)}: name its encoding, say utf-16le, or convert it to UTF-8`,
  );
}

/** The characters of bytes 0x80 to 0x9f. Five of them stand for themselves. */
const windows1252 = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ";

/** Byte order marks tell UTF-16 apart: no text in UTF-8 begins with them. */
function encodingOfMark([first, second]: Uint8Array): string {
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  return "utf-8";
}

function problemOf(bytes: Uint8Array, encoding: string, isNamed: boolean): string {
  const remedy = isNamed
    ? "name the encoding that it has"
    : "name its encoding, say latin1, or convert it to UTF-8";
  const at = encoding === "utf-8" ? invalidUtf8(bytes) : -1;
  if (at < 0) return `is no text in ${nameOf(encoding)}: ${remedy}`;
  const line = bytes
    .subarray(0, at)
    .reduce((count, byte) => (byte === 0x0a ? count + 1 : count), 1);
  const hex = (bytes[at] as number).toString(16).padStart(2, "0");
  return `line ${line} is no UTF-8 (byte 0x${hex} at ${at}): ${remedy}`;
}

const nameOf = (encoding: string): string => encoding.toUpperCase();

/** Where the first sequence starts that is no UTF-8, or −1 (Unicode, table 3-7). */
function invalidUtf8(bytes: Uint8Array): number {
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at] as number;
    const length =
      lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (length === 0) return at;
    // Overlong forms, surrogates, and what is beyond Unicode show in the second byte.
    const least = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
    const most = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
    for (let i = 1; i < length; i++) {
      const byte = bytes[at + i] ?? 0;
      if (byte < (i === 1 ? least : 0x80) || byte > (i === 1 ? most : 0xbf)) return at;
    }
    at += length;
  }
  return -1;
}
