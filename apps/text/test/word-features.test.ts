import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { afterAll, describe, expect, it } from "vitest";
import { featuresPerWord, readFeatures, WordFeatures } from "../src/word-features.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-text-features-"));
afterAll(() => rmSync(folder, { recursive: true }));

const sentences = [
  ["The", "dogs", "walked", "."],
  ["The", "cats", "walked", "."],
];
const known = WordFeatures.of(sentences, 2);
const namesOf = (words: readonly string[]): string[][] =>
  known.encode(words).map((places) => places.map((place) => known.names[place] as string));

describe("the features of words", () => {
  it("are those that occur often enough, by kind", () => {
    expect(namesOf(["The", "dogs", "walked", "."])).toEqual([
      ["shape Xx", "=~he", "[NONE]", "<", "[NONE]"],
      ["shape ", "[NONE]", "[NONE]", "<the", ">walked"],
      ["shape ", "=~ed", "=~alked", "[NONE]", ">."],
      ["shape ", "=~.", "[NONE]", "<walked", ">"],
    ]);
    expect(known.names.includes(">dogs")).toBe(false);
  });

  it("are endings where a word is not known", () => {
    expect(namesOf(["talked", "balked"])).toEqual([
      ["shape ", "=~ed", "=~alked", "<", ">~ked"],
      ["shape ", "=~ed", "=~alked", "<~ked", ">"],
    ]);
    expect(known.encode(["xyz"]).flat().length).toBe(featuresPerWord);
  });

  it("tell capitals, digits, hyphens and apostrophes", () => {
    const words = ["IBM", "Ann", "I", "1,000", "well-known", "don't", "B-52's"];
    const { names } = WordFeatures.of([words], 1);
    expect(names.filter((name) => name.startsWith("shape")).sort()).toEqual(
      ["XX", "Xx", "9", "-", "'", "Xx9-'"].map((shape) => `shape ${shape}`).sort(),
    );
  });

  it("are read from a file of names, and refused from another", async () => {
    const path = join(folder, "features.txt");
    expect(await readFeatures(path)).toBeUndefined();
    writeFileSync(path, `${known.names.join("\n")}\n`);
    expect((await readFeatures(path))?.names).toEqual(known.names);
    writeFileSync(path, "shape\n");
    const refused = await readFeatures(path).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(DataError);
    expect((refused as Error).message).toContain("does not begin with [NONE]");
  });
});
