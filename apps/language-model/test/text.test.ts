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

describe("the State of the Union", async () => {
  const { train, heldOut } = await readCorpus();

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
  it("has its last tenth held out", async () => {
    const path = fileOf("digits.txt", "0123456789".repeat(10));
    expect(await readCorpus({ text: path })).toEqual({
      name: path,
      train: "0123456789".repeat(9),
      heldOut: "0123456789",
    });
  });

  it("is never cut inside of a character", async () => {
    const { train, heldOut } = await readCorpus({ text: fileOf("clefs.txt", "𝄞".repeat(25)) });
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
      /latin1\.txt: line 1 is no UTF-8 \(byte 0xe9 at 3\): name its encoding, say latin1, or convert it to UTF-8$/,
    ],
  ])("%s is refused in a line", async (_, path, message) => {
    const reading = readCorpus({ text: path() });
    await expect(reading).rejects.toThrow(DataError);
    await expect(reading).rejects.toThrow(message);
  });

  it("in Latin-1 is read where its encoding is named", async () => {
    const text = fileOf("named.txt", Buffer.from("café ".repeat(20), "latin1"));
    expect((await readCorpus({ text, encoding: "latin1" })).heldOut).toBe("café café ");
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
