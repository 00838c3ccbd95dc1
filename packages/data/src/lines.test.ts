import { expect, test } from "vitest";
import { DataError, readJsonLines, readTsv } from "./index.js";

test("rows of tab-separated values are taken as they are", () => {
  expect(readTsv('\uFEFFham\t"so" it\\n\r\n\nspam\t\n')).toEqual([
    ["ham", '"so" it\\n'],
    ["spam", ""],
  ]);
  expect(readTsv("")).toEqual([]);
});

test("a row of another length is refused by its line", () => {
  expect(() => readTsv("a\tb\n\nc\n", { name: "x.tsv" })).toThrow(
    new DataError("x.tsv", "line 3 has 1 tab-separated fields, not 2"),
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
