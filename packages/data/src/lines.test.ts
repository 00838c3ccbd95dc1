import { expect, test } from "vitest";
import { csvRows, DataError, jsonRows, readCsv, readJsonLines, readTsv, tsvRows } from "./index.js";

test("rows of tab-separated values are taken as they are", () => {
  expect(readTsv('\uFEFFham\t"so" it\\n\r\n\nspam\t\n')).toEqual([
    ["ham", '"so" it\\n'],
    ["spam", ""],
  ]);
  expect(readTsv("")).toEqual([]);
});

test("a row of another length is refused by its line", () => {
  expect(() => readTsv("a\tb\n\nc\n", { name: "x.tsv" })).toThrow(
    new DataError("x.tsv", "line 3 has 1 tab-separated fields, not 2: give every line as many"),
  );
  expect(() => readTsv("a\tb\n", { columns: 3 })).toThrow(
    "line 1 has 2 tab-separated fields, not 3",
  );
});

test("JSON Lines are one value a line", () => {
  expect(readJsonLines('{"text":"a"}\r\n\n[1]\nnull')).toEqual([{ text: "a" }, [1], null]);
  expect(() => readJsonLines('1\n{"text":\n', { name: "x.jsonl" })).toThrow(
    /^x\.jsonl: line 2 is no JSON \(/,
  );
});

test("comma-separated values have quotes, commas and line ends in quotes", () => {
  const text = '\uFEFFlabel,text\r\ngood,"nice, ""very"" nice"\r\n\r\nbad,"two\nlines"\nbad,\n';
  expect(csvRows(text)).toEqual([
    { line: 1, fields: ["label", "text"] },
    { line: 2, fields: ["good", 'nice, "very" nice'] },
    { line: 4, fields: ["bad", "two\nlines"] },
    { line: 6, fields: ["bad", ""] },
  ]);
  expect(readCsv("")).toEqual([]);
  expect(readCsv("a,b")).toEqual([["a", "b"]]);
  expect(readCsv('a,""\n')).toEqual([["a", ""]]);
});

test("quotes that are wrong are refused by their line", () => {
  const expected = /^x\.csv: line 2 has a quote that is not closed, or not at the ends/;
  for (const text of ['a,b\nc,"d\n', 'a,b\nc,"d"e\n', 'a,b\nc,d"e\n', 'a,b\n"'])
    expect(() => readCsv(text, { name: "x.csv" }), text).toThrow(expected);
  expect(() => readCsv('a,b\n"c\nd",e\nf\n', { name: "x.csv" })).toThrow(
    "x.csv: line 4 has 1 comma-separated fields, not 2",
  );
});

test("rows know their lines", () => {
  expect(tsvRows("a\tb\n\nc\td")).toEqual([
    { line: 1, fields: ["a", "b"] },
    { line: 3, fields: ["c", "d"] },
  ]);
  expect(jsonRows("1\n\n[2]")).toEqual([
    { line: 1, value: 1 },
    { line: 3, value: [2] },
  ]);
});

test("only a line without any character is no row", () => {
  expect(readTsv("a\tb\n\t\r\n\nc\td")).toEqual([
    ["a", "b"],
    ["", ""],
    ["c", "d"],
  ]);
  expect(readTsv("a\n \nb")).toEqual([["a"], [" "], ["b"]]);
  expect(readCsv("a\n \n\r\nb\n")).toEqual([["a"], [" "], ["b"]]);
  expect(csvRows('a\n\n""\nb\n""')).toEqual([
    { line: 1, fields: ["a"] },
    { line: 3, fields: [""] },
    { line: 4, fields: ["b"] },
    { line: 5, fields: [""] },
  ]);
  expect(readJsonLines("1\n \t\n2")).toEqual([1, 2]);
});

test("lines may end by carriage returns alone", () => {
  expect(csvRows('a,b\rc,"d\re"\r\rf,g')).toEqual([
    { line: 1, fields: ["a", "b"] },
    { line: 2, fields: ["c", "d\re"] },
    { line: 5, fields: ["f", "g"] },
  ]);
  expect(tsvRows("a\tb\r\rc\td\r")).toEqual([
    { line: 1, fields: ["a", "b"] },
    { line: 3, fields: ["c", "d"] },
  ]);
  // Where lines end otherwise, it is a character of a field.
  expect(readTsv("a\tb\rc\nd\te\r\n")).toEqual([
    ["a", "b\rc"],
    ["d", "e"],
  ]);
  expect(readJsonLines("1\r[2]\r")).toEqual([1, [2]]);
});

test("bytes are refused, and how to decode them is said", () => {
  const bytes = new TextEncoder().encode("a,b\n");
  for (const [read, name] of [
    ...([readCsv, csvRows] as const).map((each) => [each, "readCsv and csvRows"] as const),
    ...([readTsv, tsvRows] as const).map((each) => [each, "readTsv and tsvRows"] as const),
    ...([readJsonLines, jsonRows] as const).map(
      (each) => [each, "readJsonLines and jsonRows"] as const,
    ),
  ]) {
    const given = read as (text: unknown) => unknown;
    expect(() => given(bytes)).toThrow(
      new TypeError(`${name}: text is a Uint8Array: pass decodeText(bytes)`),
    );
    expect(() => given(bytes.buffer)).toThrow("an ArrayBuffer: pass decodeText(bytes)");
    expect(() => given(undefined)).toThrow(
      new TypeError(`${name}: text is undefined: pass a string`),
    );
  }
});
