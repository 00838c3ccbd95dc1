// Contents that no file of a model or of data has, whatever its format.
import { gzipSync } from "node:zlib";

const bytesOf = (text) => new TextEncoder().encode(text);

/** By what is wrong. */
export const contents = Object.entries({
  "no bytes": "",
  null: "null",
  "a list": "[]",
  "a string": '"x"',
  "a part of an object": '{"a": ',
  "an empty object": "{}",
  "a zero byte": "\u0000",
  "lists in lists": `${"[".repeat(100_000)}${"]".repeat(100_000)}`,
  "lists without end": "[".repeat(100_000),
  "a Git LFS pointer": "version https://git-lfs.github.com/spec/v1\noid sha256:46\nsize 9\n",
  "a web page": "<!DOCTYPE html>\n<html><body>Not found</body></html>\n",
  "bytes that are no text": Uint8Array.of(0x63, 0xe9, 0xff, 0xfe, 0),
  zeros: new Uint8Array(1000),
  "a file of gzip": gzipSync("{}"),
}).map(([name, content]) => ({
  name,
  bytes: typeof content === "string" ? bytesOf(content) : content,
}));

/** A file cut after each of so many parts of it. */
export const cuts = (bytes, parts) =>
  Array.from({ length: parts }, (_, i) => ({
    name: `cut after ${i}/${parts}`,
    bytes: bytes.subarray(0, Math.floor((i * bytes.length) / parts)),
  }));

/** Texts by what is wrong. */
export const texts = (table) =>
  Object.entries(table).map(([name, text]) => ({ name, bytes: bytesOf(text) }));
