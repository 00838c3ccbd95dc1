import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { writeWhole } from "./whole-file.mjs";

const folder = mkdtempSync(join(tmpdir(), "halfstep-whole-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("replaces a file, or leaves nothing where it cannot", () => {
  const path = join(folder, "table.ts");
  writeWhole(path, "old");
  writeWhole(path, "new");
  expect(readFileSync(path, "utf8")).toBe("new");
  mkdirSync(join(folder, "taken"));
  expect(() => writeWhole(join(folder, "taken"), "text")).toThrow(/EISDIR|ENOTEMPTY|EPERM/);
  expect(() => writeWhole(path, Symbol("no content"))).toThrow(TypeError);
  expect(readdirSync(folder).sort()).toEqual(["table.ts", "taken"]);
  expect(readFileSync(path, "utf8")).toBe("new");
});
