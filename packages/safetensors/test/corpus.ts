import { type SafetensorsProblem, writeSafetensors } from "../src/index.js";
import { everyDtype } from "./every-dtype.js";

/** A file that has to be refused, or one that looks odd and has to be read. */
export interface Case {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** What has to be said of it; undefined where the file is good. */
  readonly problem: SafetensorsProblem | undefined;
  /** The tensor that the error has to name. */
  readonly tensor?: string;
}

/** A file from its header, which is UTF-8 or bytes, with data and a header length that may lie. */
export function file(
  header: string | Uint8Array,
  data: number | Uint8Array = 4,
  length?: bigint,
): Uint8Array<ArrayBuffer> {
  const json = typeof header === "string" ? new TextEncoder().encode(header) : header;
  const tail = typeof data === "number" ? new Uint8Array(data) : data;
  const bytes = new Uint8Array(8 + json.length + tail.length);
  new DataView(bytes.buffer).setBigUint64(0, length ?? BigInt(json.length), true);
  bytes.set(json, 8);
  bytes.set(tail, 8 + json.length);
  return bytes;
}

/** The entry of a tensor, as JSON. */
export const entry = (shape = "[1]", offsets = "[0,4]", dtype = "F32"): string =>
  `{"dtype":"${dtype}","shape":${shape},"data_offsets":${offsets}}`;

const one = `{"a":${entry()}}`;
const latin1 = (text: string): Uint8Array =>
  Uint8Array.from(text, (character) => character.charCodeAt(0));

const cases: Case[] = [];
const bad = (
  problem: SafetensorsProblem,
  name: string,
  bytes: Uint8Array<ArrayBuffer>,
  tensor?: string,
): void => {
  cases.push({ name, bytes, problem, ...(tensor !== undefined && { tensor }) });
};
const good = (name: string, bytes: Uint8Array<ArrayBuffer>): void => {
  cases.push({ name, bytes, problem: undefined });
};

// The length before the header
bad("truncated", "no bytes", new Uint8Array(0));
bad("truncated", "seven bytes", new Uint8Array(7));
bad("header-length", "length 0, nothing follows", new Uint8Array(8));
bad("header-length", "length 0 before a header", file(one, 4, 0n));
bad("truncated", "length 2, nothing follows", file("", 0, 2n));
bad("truncated", "length one beyond the file", file("{}", 0, 3n));
bad("truncated", "length of 100 million in a small file", file("{}", 0, 100_000_000n));
for (const [name, length] of [
  ["100 million and 1", 100_000_001n],
  ["2^31", 2n ** 31n],
  ["2^32 + 2", 2n ** 32n + 2n],
  ["2^53", 2n ** 53n],
  ["2^53 + 1", 2n ** 53n + 1n],
  ["2^63", 2n ** 63n],
  ["2^64 - 8", 2n ** 64n - 8n],
  ["2^64 - 1", 2n ** 64n - 1n],
] as const)
  bad("header-length", `length ${name}`, file("{}", 0, length));
bad("syntax", "length one too short", file(one, 4, BigInt(one.length - 1)));
bad("syntax", "length one too long", file(one, 4, BigInt(one.length + 1)));
bad(
  "header-length",
  "big-endian length",
  latin1("\0\0\0\0\0\0\0\x02{}") as Uint8Array<ArrayBuffer>,
);
bad(
  "header-length",
  "a pickle of torch",
  latin1("PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0archive/data.pkl") as Uint8Array<ArrayBuffer>,
);

// The encoding
bad("encoding", "byte order mark", file(`\ufeff${one}`));
bad("syntax", "UTF-16", file(latin1([...one].map((c) => `${c}\0`).join(""))));
bad("encoding", "a lone byte 0xff in a name", file(latin1(one.replace("a", "\xff"))));
bad("encoding", "a cut sequence in a name", file(latin1(one.replace("a", "\xe2\x82"))));
bad("encoding", "an overlong slash in a name", file(latin1(one.replace("a", "\xc0\xaf"))));
bad("encoding", "a surrogate in UTF-8", file(latin1(one.replace("a", "\xed\xa0\x80"))));
bad("encoding", "a code point above U+10FFFF", file(latin1(one.replace("a", "\xf4\x90\x80\x80"))));
bad(
  "encoding",
  "a surrogate split by an escape",
  file(latin1(one.replace("a", "\xf0\x9f\\n\x98"))),
);
bad("syntax", "a byte 0xff between tokens", file(latin1(one.replace(":", "\xff:"))));
bad("syntax", "a no-break space between tokens", file(one.replace(":", "\u00a0:")));
for (const [name, escaped] of [
  ["high surrogate", "\\ud800"],
  ["low surrogate", "\\udc00"],
  ["high surrogate before a letter", "\\ud800x"],
  ["high surrogate before a newline", "\\ud800\\n"],
  ["two high surrogates", "\\ud800\\ud800"],
  ["surrogates in the wrong order", "\\udc00\\ud800"],
] as const)
  bad("encoding", `escaped ${name}`, file(one.replace("a", escaped)));

// JSON
for (const [name, header] of [
  ["leading space", ` ${one}`],
  ["leading newline", `\n${one}`],
  ["an array", "[]"],
  ["a string", '"{}"'],
  ["null", "null"],
  ["an open brace", "{"],
  ["only spaces", "        "],
  ["a trailing comma", one.replace(/}$/, ",}")],
  ["a leading comma", one.replace("{", "{,")],
  ["two commas", `{"a":${entry()},,"b":${entry("[0]", "[4,4]")}}`],
  ["no comma", `{"a":${entry()} "b":${entry("[0]", "[4,4]")}}`],
  ["no colon", one.replace(":", " ")],
  ["a key without quotes", one.replace('"a"', "a")],
  ["single quotes", one.replaceAll('"', "'")],
  ["a comment", `{/* */${one.slice(1)}`],
  ["a number as key", one.replace('"a"', "1")],
  ["a name that does not end", '{"a'],
  ["a name that ends in a backslash", '{"a\\'],
  ["a tab in a name", one.replace("a", "a\tb")],
  ["a newline in a name", one.replace("a", "a\nb")],
  ["a NUL in a name", one.replace("a", "a\0b")],
  ["an unknown escape", one.replace("a", "\\x41")],
  ["an escape of a newline", one.replace("a", "\\\n")],
  ["a short unicode escape", one.replace("a", "\\u41")],
  ["a unicode escape that is not hexadecimal", one.replace("a", "\\u00g1")],
  ["a unicode escape over the end of the name", '{"\\u00"41'],
  ["a unicode escape with a sign", one.replace("a", "\\u+041")],
  ["a trailing NUL", `${one}\0`],
  ["trailing spaces and a letter", `${one}   x`],
  ["a trailing brace", `${one}}`],
  ["a second header", one + one],
  ["a trailing newline", `${one}\n`],
  ["a trailing tab", `${one}\t `],
  ["a trailing carriage return", `${one}  \r`],
] as const)
  bad("syntax", name, file(header));

// Keys
bad("duplicate", "a tensor twice", file(`{"a":${entry()},"a":${entry()}}`), "a");
bad(
  "duplicate",
  "a tensor twice, once escaped",
  file(`{"a":${entry()},"\\u0061":${entry()}}`),
  "a",
);
bad(
  "duplicate",
  "a tensor twice, apart",
  file(`{"a":${entry()},"b":${entry("[0]", "[4,4]")},"a":${entry("[0]", "[4,4]")}}`),
  "a",
);
bad(
  "duplicate",
  "__proto__ twice",
  file(`{"__proto__":${entry()},"__proto__":${entry()}}`),
  "__proto__",
);
bad(
  "duplicate",
  "constructor twice",
  file(`{"constructor":${entry()},"constructor":${entry()}}`),
  "constructor",
);
bad("duplicate", "dtype twice", file(one.replace('"dtype":', '"dtype":"F32","dtype":')), "a");
bad("duplicate", "shape twice", file(one.replace('"shape":', '"shape":[1],"shape":')), "a");
bad(
  "duplicate",
  "data_offsets twice",
  file(one.replace('"shape":', '"data_offsets":[0,4],"shape":')),
  "a",
);
bad(
  "duplicate",
  "shape twice, once escaped",
  file(one.replace('"shape":', '"sh\\u0061pe":[1],"shape":')),
  "a",
);
bad("duplicate", "metadata twice", file(`{"__metadata__":{},"__metadata__":{},${one.slice(1)}`));
bad("duplicate", "a metadata key twice", file(`{"__metadata__":{"x":"1","x":"2"},${one.slice(1)}`));
bad(
  "duplicate",
  "the metadata key __proto__ twice",
  file(`{"__metadata__":{"__proto__":"1","__proto__":"1"},${one.slice(1)}`),
);

// Fields
for (const field of ["dtype", "shape", "data_offsets"])
  bad(
    "field",
    `no ${field}`,
    file(one.replace(new RegExp(`,?"${field}":("F32"|\\[[^\\]]*\\])`), "").replace("{,", "{")),
    "a",
  );
bad("field", "no fields", file('{"a":{}}'), "a");
bad("field", "an unknown field", file(one.replace('"shape"', '"strides":[1],"shape"')), "a");
bad(
  "field",
  "a field called __proto__",
  file(one.replace('"shape"', '"__proto__":{"x":1},"shape"')),
  "a",
);
bad("field", "a field in capitals", file(one.replace('"shape"', '"Shape"')), "a");
for (const [name, value] of [
  ["null", "null"],
  ["a number", "1"],
  ["a string", '"F32"'],
  ["an array", '["F32",[1],[0,4]]'],
  ["true", "true"],
] as const)
  bad("field", `${name} for a tensor`, file(`{"a":${value}}`), "a");

// Depth
const deep = 20_000;
bad("field", "arrays nested for a tensor", file(`{"a":${"[".repeat(deep)}`), "a");
bad("field", "objects nested for a tensor", file(`{"a":${'{"a":'.repeat(deep)}`), "a");
bad("shape", "arrays nested in a shape", file(`{"a":${entry("[".repeat(deep))}`), "a");
bad("offsets", "arrays nested in offsets", file(`{"a":${entry("[1]", "[".repeat(deep))}`), "a");
bad("metadata", "objects nested in metadata", file(`{"__metadata__":${'{"a":'.repeat(deep)}`));
bad(
  "field",
  "arrays nested in an unknown field",
  file(one.replace('"shape"', `"x":${"[".repeat(deep)}${"]".repeat(deep)},"shape"`)),
  "a",
);

// Metadata
for (const [name, value] of [
  ["null", "null"],
  ["a string", '"x"'],
  ["an array", "[]"],
  ["a number in it", '{"x":1}'],
  ["null in it", '{"x":null}'],
  ["true in it", '{"x":true}'],
  ["an object in it", '{"x":{}}'],
  ["an array in it", '{"x":["y"]}'],
  ["a tensor for it", entry()],
] as const)
  bad("metadata", `metadata: ${name}`, file(`{"__metadata__":${value},${one.slice(1)}`));
bad(
  "encoding",
  "metadata: half of a pair in a value",
  file(`{"__metadata__":{"x":"\\ud800"},${one.slice(1)}`),
);

// dtypes
for (const dtype of [
  "f32",
  "F33",
  "FP32",
  "float32",
  "",
  "F32 ",
  "F8",
  "I4",
  "Q8_0",
  "__proto__",
  "constructor",
  "toString",
  "F".repeat(10_000),
])
  bad("dtype", `dtype "${dtype.slice(0, 12)}"`, file(`{"a":${entry("[1]", "[0,4]", dtype)}}`), "a");
bad("dtype", "dtype null", file(one.replace('"F32"', "null")), "a");
bad("dtype", "dtype 32", file(one.replace('"F32"', "32")), "a");
bad("dtype", "dtype object", file(one.replace('"F32"', '{"F32":null}')), "a");

// Shapes
for (const [name, shape] of [
  ["negative", "[-1]"],
  ["minus zero", "[-0]"],
  ["fraction", "[1.5]"],
  ["whole fraction", "[1.0]"],
  ["exponent", "[1e0]"],
  ["capital exponent", "[1E0]"],
  ["string", '["1"]'],
  ["null", "[null]"],
  ["true", "[true]"],
  ["nested", "[[1]]"],
  ["number", "1"],
  ["object", "{}"],
  ["plus sign", "[+1]"],
  ["NaN", "[NaN]"],
  ["Infinity", "[Infinity]"],
  ["2^53", "[9007199254740992]"],
  ["2^64", "[18446744073709551616]"],
  ["2^64 and 0", "[18446744073709551616,0]"],
  ["a thousand digits", `[${"9".repeat(1000)}]`],
  ["trailing comma", "[1,]"],
  ["product 2^64 + 1 elements", "[4294967297,4294967297]"],
  ["product that wraps to 1 in 64 bits", "[2,9223372036854775807]"],
  ["product that overflows before a zero", "[4503599627370496,4503599627370496,0]"],
  ["bits that overflow", "[1152921504606846976]"],
  ["a thousand dimensions", `[${Array(1000).fill(1)}]`],
] as const)
  bad("shape", `shape: ${name}`, file(`{"a":${entry(shape)}}`), "a");
for (const [name, shape] of [
  ["leading zero", "[01]"],
  ["two zeros", "[00]"],
  ["hexadecimal", "[0x1]"],
  ["no comma", "[1 1]"],
  ["no end", "[1}"],
  ["underscore", "[1_0]"],
] as const)
  bad("syntax", `shape: ${name}`, file(`{"a":${entry(shape)}}`), "a");
for (const [name, shape] of [
  ["2^53 in an empty tensor", "[0,9007199254740992]"],
  ["2^60 elements before a zero", "[1073741824,1073741824,0]"],
] as const)
  bad("shape", `shape: ${name}`, file(`{"a":${entry(shape, "[0,0]")}}`, 0), "a");
bad("shape", "three elements of F4", file(`{"a":${entry("[3]", "[0,2]", "F4")}}`, 2), "a");
bad("shape", "five elements of F6_E2M3", file(`{"a":${entry("[5]", "[0,4]", "F6_E2M3")}}`), "a");

// Offsets
for (const [name, offsets] of [
  ["negative start", "[-4,0]"],
  ["negative end", "[0,-4]"],
  ["reversed", "[4,0]"],
  ["fraction", "[0,4.0]"],
  ["exponent", "[0,4e0]"],
  ["string", '["0","4"]'],
  ["null", "[null,4]"],
  ["none", "[]"],
  ["one", "[4]"],
  ["three", "[0,4,4]"],
  ["number", "4"],
  ["object", '{"begin":0,"end":4}'],
  ["2^53", "[0,9007199254740992]"],
  ["2^64 to 2^64 + 4", "[18446744073709551616,18446744073709551620]"],
] as const)
  bad("offsets", `offsets: ${name}`, file(`{"a":${entry("[1]", offsets)}}`), "a");
bad("size", "offsets span too little", file(`{"a":${entry("[1]", "[0,3]")}}`, 3), "a");
bad("size", "offsets span too much", file(`{"a":${entry("[1]", "[0,5]")}}`, 5), "a");
bad("size", "offsets span nothing", file(`{"a":${entry("[1]", "[0,0]")}}`, 0), "a");
bad("size", "an empty tensor spans data", file(`{"a":${entry("[0]")}}`), "a");
bad("size", "a scalar spans two", file(`{"a":${entry("[]", "[0,8]")}}`, 8), "a");
bad("size", "a shape that would be right for F16", file(`{"a":${entry("[2]", "[0,4]")}}`), "a");
bad("size", "2^50 elements over 4 bytes", file(`{"a":${entry("[1099511627776]")}}`), "a");
bad("size", "a span beyond 2^52", file(`{"a":${entry("[1]", "[0,4503599627370496]")}}`), "a");

// The cover of the data
const two = (first: string, second: string): string => `{"a":${first},"b":${second}}`;
bad("hole", "data that does not start at 0", file(`{"a":${entry("[1]", "[4,8]")}}`, 8), "a");
bad("hole", "data that starts at 1", file(`{"a":${entry("[1]", "[1,5]")}}`, 5), "a");
bad("hole", "a hole between tensors", file(two(entry(), entry("[1]", "[8,12]")), 12), "b");
bad(
  "hole",
  "a tensor far away",
  file(two(entry(), entry("[1]", "[4503599627370496,4503599627370500]")), 8),
  "b",
);
bad("hole", "an empty tensor after a hole", file(two(entry(), entry("[0]", "[8,8]")), 8), "b");
bad("overlap", "two tensors on the same data", file(two(entry(), entry())), "b");
bad("overlap", "tensors that overlap by a byte", file(two(entry(), entry("[1]", "[3,7]")), 7), "b");
bad(
  "overlap",
  "a tensor inside another",
  file(two(entry("[3]", "[0,12]"), entry("[1]", "[4,8]")), 12),
  "b",
);
bad(
  "overlap",
  "tensors that overlap, the later first",
  file(two(entry("[1]", "[2,6]"), entry()), 6),
  "a",
);
bad("overlap", "an empty tensor inside another", file(two(entry(), entry("[0]", "[2,2]"))), "b");
bad(
  "overlap",
  "ten tensors on the same data",
  file(`{${Array.from({ length: 10 }, (_, i) => `"w${i}":${entry()}`)}}`),
  "w1",
);
bad("truncated", "no data", file(one, 0), "a");
bad("truncated", "one byte of data is missing", file(one, 3), "a");
bad("truncated", "the second tensor is cut", file(two(entry(), entry("[1]", "[4,8]")), 7), "b");
bad(
  "truncated",
  "an exabyte of data",
  file(`{"a":${entry("[1125899906842623]", "[0,1125899906842623]", "U8")}}`),
  "a",
);
bad("trailing-data", "one byte more", file(one, 5));
bad("trailing-data", "data and no tensors", file("{}", 1));
bad("trailing-data", "a second file after the first", file(one, file(one)));
bad("trailing-data", "data after empty tensors", file(`{"a":${entry("[0]", "[0,0]")}}`));

// Odd, and good
good("no tensors", file("{}", 0));
good("metadata alone", file('{"__metadata__":{"a":"b"}}', 0));
good("empty metadata", file(`{"__metadata__":{},${one.slice(1)}`));
good("metadata last", file(`{"a":${entry()},"__metadata__":{"x":"y"}}`));
good("metadata with an escaped key", file(`{"\\u005f_metadata__":{"x":"y"},${one.slice(1)}`));
good(
  "metadata called __proto__",
  file(`{"__metadata__":{"__proto__":"x","constructor":"y"},${one.slice(1)}`),
);
good("spaces after the header", file(`${one}     `));
good("a header of odd length", file(`${one}   `));
good(
  "whitespace between tokens",
  file('{ "a" :\n\t{"dtype":"F32","shape":[ 1 ],"data_offsets":[0 , 4]}\r}'),
);
good("fields in another order", file('{"a":{"data_offsets":[0,4],"shape":[1],"dtype":"F32"}}'));
good("an escaped dtype", file(one.replace("F32", "F\\u00332")));
good("an escaped field", file(one.replace("shape", "sh\\u0061pe")));
good(
  "all escapes in a name",
  file(one.replace("a", '\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u20AC\\ud83d\\ude00')),
);
good("characters of every length in a name", file(one.replace("a", "aé€😀\u007f\u2028")));
good("a byte order mark in a name", file(one.replace("a", "\ufeff")));
good("an empty name", file(one.replace("a", "")));
good("a tensor called __proto__", file(one.replace("a", "__proto__")));
good("a tensor called constructor", file(one.replace("a", "constructor")));
good("a scalar", file(`{"a":${entry("[]")}}`));
good("an empty tensor", file(`{"a":${entry("[3,0]", "[0,0]")}}`, 0));
good(
  "empty tensors before, between and after",
  file(
    `{"z":${entry("[0]", "[4,4]")},"a":${entry()},"b":${entry("[1]", "[4,8]")},"y":${entry("[0]", "[0,0]")},"c":${entry("[0]", "[8,8]")}}`,
    8,
  ),
);
good("tensors in another order than their data", file(two(entry("[1]", "[4,8]"), entry()), 8));
good(
  "a tensor that is not aligned",
  file(`{"a":${entry("[1]", "[0,1]", "U8")},"b":${entry("[1]", "[1,5]")}}`, 5),
);
good("64 dimensions", file(`{"a":${entry(`[${Array(64).fill(1)}]`)}}`));
good("two elements of F4", file(`{"a":${entry("[2]", "[0,1]", "F4")}}`, 1));
good("four elements of F6_E3M2", file(`{"a":${entry("[2,2]", "[0,3]", "F6_E3M2")}}`, 3));
good("a complex number", file(`{"a":${entry("[1]", "[0,8]", "C64")}}`, 8));

// Written here, for the reference to read
good("nothing, written", writeSafetensors({}));
good(
  "every dtype, written",
  writeSafetensors(everyDtype(), { metadata: { z: "1", a: '"\\\n€😀', "": "" } }),
);
good(
  "empty and scalar tensors, written",
  writeSafetensors({
    "a/b c": { dtype: "F64", shape: [], data: Float64Array.of(Number.NaN) },
    "\u0000\u001f\u007f\u2028": { dtype: "BOOL", shape: [0, 5], data: new Uint8Array(0) },
    "😀": { dtype: "U8", shape: [1], data: Uint8Array.of(1) },
    "\uffee": { dtype: "U8", shape: [1, 1], data: Uint8Array.of(2) },
  }),
);

export const corpus: readonly Case[] = cases;
