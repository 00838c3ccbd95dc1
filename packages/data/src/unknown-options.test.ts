import { expect, test } from "vitest";
import { decodeText } from "./decode-text.js";
import { fileBytes } from "./file-bytes.js";
import { imageFolder } from "./image-folder.js";
import { csvRows, jsonRows, readCsv, readJsonLines, readTsv, tsvRows } from "./lines.js";

test("unknown options of readers are refused", async () => {
  const wrong = { colums: 2 } as never;
  for (const call of [
    () => readTsv("a\tb", wrong),
    () => tsvRows("a\tb", wrong),
    () => readCsv("a,b", wrong),
    () => csvRows("a,b", wrong),
    () => readJsonLines("1", wrong),
    () => jsonRows("1", wrong),
    () => decodeText(Uint8Array.of(65), wrong),
  ])
    expect(call).toThrow("there is no option");
  for (const call of [() => fileBytes(import.meta.filename, wrong), () => imageFolder(".", wrong)])
    await expect(call()).rejects.toThrow("there is no option");
});
