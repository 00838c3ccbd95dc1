import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { afterAll, describe, expect, it } from "vitest";
import { excerpt, readCorpus } from "../src/text.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-text-"));
afterAll(() => rmSync(folder, { recursive: true }));

const fileOf = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

describe("the State of the Union", () => {
  const { train, heldOut } = readCorpus();

  it("is cut by years: 98 characters, a tenth held out", () => {
    expect(new Set(train + heldOut).size).toBe(98);
    expect(train.length + heldOut.length).toBeGreaterThan(10_700_000);
    expect(heldOut.length / (train.length + heldOut.length)).toBeCloseTo(0.096, 3);
  });

  it("has no address in both parts", () => {
    // The first addresses of the years 1799 and 1790.
    expect(heldOut.slice(0, 200)).not.toBe(train.slice(0, 200));
    expect(train).not.toContain(heldOut.slice(0, 200));
    expect(heldOut).not.toContain(train.slice(0, 200));
  });
});

describe("a text file", () => {
  it("has its last tenth held out", () => {
    const path = fileOf("digits.txt", "0123456789".repeat(10));
    expect(readCorpus(path)).toEqual({
      name: path,
      train: "0123456789".repeat(9),
      heldOut: "0123456789",
    });
  });

  it("is never cut inside of a character", () => {
    const { train, heldOut } = readCorpus(fileOf("clefs.txt", "𝄞".repeat(25)));
    expect([...train, ...heldOut]).toEqual(Array(25).fill("𝄞"));
  });

  it.each([
    [
      "that is not there",
      () => join(folder, "none.txt"),
      /none\.txt: is not there: check the path$/,
    ],
    ["that is empty", () => fileOf("empty.txt", ""), /empty\.txt: has no text$/],
    [
      "in Latin-1",
      () => fileOf("latin1.txt", Uint8Array.of(0x63, 0x61, 0x66, 0xe9)),
      /latin1\.txt: is no text in UTF-8: convert it, say with iconv -t utf-8$/,
    ],
  ])("%s is refused in a line", (_, path, message) => {
    expect(() => readCorpus(path())).toThrow(DataError);
    expect(() => readCorpus(path())).toThrow(message);
  });
});

describe("an excerpt", () => {
  it("has pieces from all over the text", () => {
    expect(excerpt("aabbccddeeffgghh", 4, 4)).toBe("aceg");
  });

  it("is the text where that is short", () => {
    expect(excerpt("short", 100)).toBe("short");
  });
});
