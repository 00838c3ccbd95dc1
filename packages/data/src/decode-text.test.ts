import { expect, test } from "vitest";
import { DataError, decodeText } from "./index.js";

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const utf16 = (text: string, isLittle: boolean): Uint8Array => {
  const bytes = new DataView(new ArrayBuffer(2 * text.length));
  for (let i = 0; i < text.length; i++) bytes.setUint16(2 * i, text.charCodeAt(i), isLittle);
  return new Uint8Array(bytes.buffer);
};

test("text is UTF-8, or UTF-16 with its mark, and marks are no part of it", () => {
  expect(decodeText(utf8("café 𝄞\n"))).toBe("café 𝄞\n");
  expect(decodeText(utf8("\uFEFFcafé"))).toBe("café");
  expect(decodeText(utf16("\uFEFFcafé", true))).toBe("café");
  expect(decodeText(utf16("\uFEFFcafé", false))).toBe("café");
  expect(decodeText(new Uint8Array())).toBe("");
});

test("another encoding is named", () => {
  const latin1 = Uint8Array.of(0x63, 0x61, 0x66, 0xe9);
  expect(decodeText(latin1, { encoding: "latin1" })).toBe("café");
  expect(decodeText(utf16("café", true), { encoding: "utf-16le" })).toBe("café");
  expect(() => decodeText(latin1, { encoding: "latin-99" })).toThrow(RangeError);
});

test("windows-1252, which is also called latin1, has the characters of browsers in every byte", () => {
  const bytes = Uint8Array.from({ length: 255 }, (_, i) => i + 1);
  const high =
    "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ" +
    String.fromCharCode(...bytes.subarray(0xa0 - 1));
  const expected = String.fromCharCode(...bytes.subarray(0, 0x7f)) + high;
  for (const encoding of ["latin1", "windows-1252", "cp1252", "iso-8859-1", "ascii"])
    expect(decodeText(bytes, { encoding }), encoding).toBe(expected);
  // Of other encodings of one byte, Node 20 knows these characters.
  for (const [encoding, euro] of Object.entries({
    ...{ "windows-1250": 0x80, "windows-1251": 0x88, "windows-1253": 0x80, "windows-1254": 0x80 },
    ...{ "windows-1255": 0x80, "windows-1256": 0x80, "windows-1257": 0x80, "windows-1258": 0x80 },
    ...{ "windows-874": 0x80, "iso-8859-15": 0xa4, "iso-8859-7": 0xa4, macintosh: 0xdb },
  }))
    expect(decodeText(Uint8Array.of(euro), { encoding }), encoding).toBe("€");
});

test("bytes that are no text are refused by line and byte, with what to do", () => {
  const read = (bytes: Uint8Array, encoding?: string) => () =>
    decodeText(bytes, { name: "x.tsv", encoding });
  const latin1 = Buffer.from("good\tnice\nbad\tcafé\n", "latin1");
  expect(read(latin1)).toThrow(
    new DataError(
      "x.tsv",
      "line 2 is no UTF-8 (byte 0xe9 at 17): name its encoding, say latin1, or convert it to UTF-8",
    ),
  );
  expect(read(utf16("a\nb", true))).toThrow(
    /^x\.tsv: line 1 has a character of the number 0, .*utf-16le, or convert/,
  );
  expect(read(Uint8Array.of(0, 0xd8), "utf-16le")).toThrow(
    "x.tsv: is no text in UTF-16LE: name the encoding that it has",
  );
});

test("the byte is the first of each sequence that the decoder refuses", () => {
  const wrong = [
    [0x80],
    [0xc1, 0x80],
    [0xc3, 0x41],
    [0xe0, 0x9f, 0x80],
    [0xed, 0xa0, 0x80],
    [0xe2, 0x82],
    [0xf0, 0x8f, 0x80, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xf5, 0x80, 0x80, 0x80],
    [0xff],
  ];
  for (const bytes of wrong) {
    const text = Uint8Array.of(...utf8("é€𝄞"), ...bytes);
    expect(() => decodeText(text), String(bytes)).toThrow("at 9)");
  }
});

test("bytes may be an ArrayBuffer, and nothing that is none", () => {
  expect(decodeText(new TextEncoder().encode("abc").buffer)).toBe("abc");
  expect(() => decodeText("abc" as unknown as Uint8Array)).toThrow(
    new TypeError(
      `decodeText: bytes is "abc": pass a Uint8Array or an ArrayBuffer with the file's content`,
    ),
  );
});
