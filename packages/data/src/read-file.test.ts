import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { DataError } from "./error.js";
import { readJsonFile, readTextFile } from "./node.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-read-file-"));
afterAll(() => rmSync(folder, { recursive: true }));

const fileOf = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

const refusal = async (reading: Promise<unknown>): Promise<string> => {
  const error = await reading.then(
    () => new Error("taken"),
    (thrown: Error) => thrown,
  );
  expect(error).toBeInstanceOf(DataError);
  return error.message.replaceAll(`${folder}/`, "");
};

describe("a text file", () => {
  it("is read in UTF-8, or in the encoding that is named", async () => {
    const path = fileOf("latin1.txt", Buffer.from("café", "latin1"));
    expect(await readTextFile(path, { encoding: "latin1" })).toBe("café");
    expect(await readTextFile(fileOf("utf8.txt", "\uFEFFcafé"))).toBe("café");
    expect(await refusal(readTextFile(path))).toMatch(/^latin1\.txt: line 1 is no UTF-8 \(byte/);
  });

  it("that is none, or too long for a string, is refused before it is read", async () => {
    const sparse = fileOf("sparse.txt", "");
    truncateSync(sparse, 2 ** 31);
    expect(await refusal(readTextFile(sparse))).toMatch(
      /^sparse\.txt: has 2147483648 bytes, and at/,
    );
    mkdirSync(join(folder, "directory"));
    expect(await refusal(readTextFile(join(folder, "directory")))).toBe(
      "directory: is a folder: name a file",
    );
  });
});

describe("a JSON file", () => {
  it("is a value", async () => {
    expect(await readJsonFile(fileOf("a.json", '\uFEFF{"a":[1]}'))).toEqual({ a: [1] });
  });

  it("that is broken or too long is refused in a line", async () => {
    expect(await refusal(readJsonFile(fileOf("b.json", '{"a":\n\n1')))).toMatch(
      /^b\.json: is no JSON \(.*\): restore it, or download it again$/,
    );
    expect(await refusal(readJsonFile(fileOf("c.json", "[1,2]"), { mostBytes: 4 }))).toBe(
      "c.json: has 5 bytes, and at most 4 are read",
    );
  });
});
