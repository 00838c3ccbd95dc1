import type { SafetensorsProblem } from "./error.js";

/** Throws; `at` counts from the first byte of the JSON. */
export type Fail = (problem: SafetensorsProblem, fact: string, at: number) => never;

const quoteMark = 0x22;
const backslash = 0x5c;
const letterU = 0x75;
const zero = 0x30;
const nine = 0x39;

// The byte after a backslash, and the character of the escape.
const escapes: ReadonlyMap<number, number> = new Map(
  [...'"\\/bfnrt'].map((letter, index) => [
    letter.charCodeAt(0),
    '"\\/\b\f\n\r\t'.charCodeAt(index),
  ]),
);

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads the JSON of a header piece by piece, straight from its bytes. The caller requests each expected token, so that
 * nothing nests and no unexpected value is built. JSON.parse would hide duplicate keys, round large integers, and first
 * make a string of the whole.
 */
export class JsonScanner {
  readonly #bytes: Uint8Array;
  readonly #fail: Fail;
  #at = 0;

  constructor(bytes: Uint8Array, fail: Fail) {
    this.#bytes = bytes;
    this.#fail = fail;
  }

  /** The position of the next token. */
  get at(): number {
    const bytes = this.#bytes;
    while (isSpace(bytes[this.#at])) this.#at += 1;
    return this.#at;
  }

  /** Skips a punctuation mark if it is what comes next. */
  take(mark: string): boolean {
    const found = this.#bytes[this.at] === mark.charCodeAt(0);
    if (found) this.#at += 1;
    return found;
  }

  /** Skips a punctuation mark. */
  expect(mark: string, problem: SafetensorsProblem = "syntax"): void {
    if (!this.take(mark)) this.#unexpected(`"${mark}"`, problem);
  }

  /** The next string, unescaped. */
  string(what: string, problem: SafetensorsProblem = "syntax"): string {
    const bytes = this.#bytes;
    const open = this.at;
    if (bytes[open] !== quoteMark) this.#unexpected(what, problem);
    let end = open + 1;
    let escaped = false;
    for (; bytes[end] !== quoteMark; end += 1) {
      const byte = bytes[end];
      if (byte === undefined) this.#fail("syntax", `${what} has no end`, open);
      if (byte < 0x20)
        this.#fail("syntax", `${what} has a control character that is not escaped`, end);
      if (byte === backslash) {
        escaped = true;
        // The next byte is no end, whatever it is; unescape() looks at it.
        end += 1;
      }
    }
    this.#at = end + 1;
    const raw = escaped ? this.#unescape(open + 1, end) : bytes.subarray(open + 1, end);
    try {
      return utf8.decode(raw);
    } catch {
      return this.#fail("encoding", `${what} is not UTF-8`, open);
    }
  }

  /** The next integer, 0 or above. */
  integer(what: string, problem: SafetensorsProblem): number {
    const bytes = this.#bytes;
    const start = this.at;
    let value = 0;
    let byte = bytes[start];
    for (; isDigit(byte); byte = bytes[this.#at]) {
      value = value * 10 + (byte - zero);
      if (value > Number.MAX_SAFE_INTEGER)
        this.#fail(problem, `${what} is above ${Number.MAX_SAFE_INTEGER}`, start);
      this.#at += 1;
      if (value === 0 && isDigit(bytes[this.#at]))
        this.#fail("syntax", `${what} has a leading zero`, start);
    }
    if (this.#at === start) this.#unexpected(`${what}, an integer of at least 0`, problem);
    if (byte === 0x2e || byte === 0x65 || byte === 0x45)
      this.#fail(problem, `${what} is not written as an integer`, start);
    return value;
  }

  /** Only spaces may follow. */
  end(): void {
    const rest = this.#bytes.subarray(this.#at);
    const garbage = rest.findIndex((byte) => byte !== 0x20);
    if (garbage < 0) return;
    this.#at += garbage;
    this.#unexpected("nothing but spaces after the header's end", "syntax");
  }

  #unexpected(expected: string, problem: SafetensorsProblem): never {
    const byte = this.#bytes[this.#at];
    const printable = byte !== undefined && byte > 0x20 && byte < 0x7f;
    const found =
      byte === undefined
        ? "the header ends"
        : `found ${printable ? String.fromCharCode(byte) : `byte 0x${byte.toString(16).padStart(2, "0")}`}`;
    return this.#fail(problem, `expected ${expected}, ${found}`, this.#at);
  }

  /** The UTF-8 of a string with escapes, which is never longer than they are. */
  #unescape(start: number, end: number): Uint8Array {
    const bytes = this.#bytes;
    const text = new Uint8Array(end - start);
    let length = 0;
    for (let at = start; at < end; ) {
      const byte = bytes[at] as number;
      if (byte !== backslash) {
        text[length++] = byte;
        at += 1;
        continue;
      }
      const plain = escapes.get(bytes[at + 1] as number);
      if (plain !== undefined) {
        text[length++] = plain;
        at += 2;
        continue;
      }
      const unit = this.#codeUnit(at);
      const isHigh = unit >= 0xd800 && unit < 0xdc00;
      const low =
        isHigh && bytes[at + 6] === backslash && bytes[at + 7] === letterU
          ? this.#codeUnit(at + 6)
          : 0;
      const isPair = low >= 0xdc00 && low < 0xe000;
      if (unit >= 0xd800 && unit < 0xe000 && !isPair)
        this.#fail("encoding", "half of a surrogate pair is escaped", at);
      const point = isPair ? 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00) : unit;
      length = putUtf8(text, length, point);
      at += isPair ? 12 : 6;
    }
    return text.subarray(0, length);
  }

  /** The code unit of an escape \uXXXX. */
  #codeUnit(at: number): number {
    const bytes = this.#bytes;
    let unit = bytes[at + 1] === letterU ? 0 : -1;
    for (let digit = 2; digit < 6 && unit >= 0; digit += 1) {
      const value = hexValue(bytes[at + digit]);
      unit = value < 0 ? -1 : unit * 16 + value;
    }
    return unit < 0 ? this.#fail("syntax", "a backslash starts no escape of JSON", at) : unit;
  }
}

function hexValue(byte = 0): number {
  if (isDigit(byte)) return byte - zero;
  const letter = (byte | 0x20) - 0x61;
  return letter >= 0 && letter < 6 ? letter + 10 : -1;
}

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

const isDigit = (byte: number | undefined): byte is number =>
  byte !== undefined && byte >= zero && byte <= nine;

function putUtf8(into: Uint8Array, at: number, point: number): number {
  if (point < 0x80) {
    into[at] = point;
    return at + 1;
  }
  const more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  into[at] = ((0xff00 >> (more + 1)) & 0xff) | (point >> (6 * more));
  for (let i = 1; i <= more; i += 1) into[at + i] = 0x80 | ((point >> (6 * (more - i))) & 0x3f);
  return at + more + 1;
}
