import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { afterAll, describe, expect, it } from "vitest";
import { mostFrequentTag, naiveBayes } from "../src/baseline.js";
import { readBrown, taggedSentences, universalTag, universalTags } from "../src/brown.js";
import { describeData, describeEmpty, requireSplits } from "../src/describe-data.js";
import { type Labelled, limited, sampleOf, splitOf } from "../src/examples.js";
import { partOf, readMails } from "../src/mails.js";
import { readSentences } from "../src/sentences.js";
import { dataPackage, readTask, type TaskData, type TaskSource } from "../src/tasks.js";
import { firstWords } from "../src/words.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-text-data-"));
afterAll(() => rmSync(folder, { recursive: true }));

const fileOf = (name: string, text: string | Uint8Array): string => {
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

describe("a limit", () => {
  const inOrder = Array.from({ length: 90 }, (_, i) => ({
    text: `text ${i}`,
    label: i < 60 ? 0 : 1,
  }));

  it("takes classes in their proportions, of a file that is sorted by them", () => {
    const labels = sampleOf(inOrder, 9).map(({ label }) => label);
    expect(labels).toEqual([0, 0, 0, 0, 0, 0, 1, 1, 1]);
    expect(limited({ train: inOrder, test: inOrder.slice(55) }, 2)).toMatchObject({
      train: [{ label: 0 }, { label: 1 }],
      test: [{ label: 0 }, { label: 1 }],
    });
  });

  it("takes what has no class from all of a file, and all of it where that is no more", () => {
    const texts = inOrder.map(({ text }) => text);
    const [first, last] = [sampleOf(texts, 10)[0], sampleOf(texts, 10).at(-1)];
    expect(texts.indexOf(last as string) - texts.indexOf(first as string)).toBeGreaterThan(45);
    expect(sampleOf(texts, 10)).toEqual(sampleOf(texts, 10));
    expect([sampleOf(texts, 90), sampleOf(texts, undefined)]).toEqual([texts, texts]);
  });
});

describe("SpamAssassin", { timeout: 600_000 }, () => {
  it("has the mails that differ, and naive Bayes tells most of their first 60 words", async () => {
    const directory = join(await dataPackage("mails"), "data");
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

describe("the UCI sentences", async () => {
  const directory = join(await dataPackage("sentences"), "test", "fixtures");

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
    const splits = await readBrown(await dataPackage("brown"));
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
      "a.tsv: line 2 has 1 tab-separated fields, not 2: give every line as many",
    );
    expect(await refusal("spam", fileOf("b.jsonl", '\n{"label":[],"text":""}'))).toBe(
      'b.jsonl: line 2 needs "label", a label, and "text", a string: --label-column and --text-column name others',
    );
    expect(await refusal("spam", fileOf("c.tsv", "yes\tgood\nyes\tfine"))).toBe(
      'c.tsv: has one label, "yes": give texts of two or more',
    );
    expect(await refusal("spam", fileOf("d.tsv", "no\tbad\nmaybe\tgood"), ["no", "yes"])).toBe(
      'd.tsv: line 2 has the label "maybe", which is none of no, yes',
    );
    expect(await refusal("spam", fileOf("e.tsv", "\n\r\n"))).toBe(
      "e.tsv: has no examples: put a label and a text into each line",
    );
    expect(await refusal("spam", fileOf("f.txt", "good and nice\n"))).toBe(
      "f.txt: line 1 has 1 field, and needs two, a label and a text: put a tab between them, or name the file .csv or .jsonl",
    );
    expect(await refusal("mlm", fileOf("g.txt", "\n\n"))).toBe("g.txt: has no text");
    expect(await refusal("tags", fileOf("h.txt", "\n"))).toBe(
      "h.txt: has no word/tag words: put a sentence of them into each line",
    );
    const links = Array.from({ length: 12 }, (_, i) => `http://a.b/${i}`).join(" ");
    expect(await refusal("tags", fileOf("i.txt", links))).toMatch(
      /^i\.txt: has 12 tags for 12 words/,
    );
    expect(await refusal("tags", join(folder, "none.txt"))).toBe(
      "none.txt: is not there: check the path",
    );
  });

  const reviews = Array.from({ length: 20 }, (_, i) => [`film number ${i}`, i % 2 ? "1" : "0"]);
  const tableOf = (rows: readonly (readonly string[])[], mark = "\t"): string =>
    rows.map((row) => `${row.join(mark)}\r\n`).join("");
  const readWith = (name: string, text: string | Uint8Array, more: Partial<TaskSource> = {}) =>
    readTask({ ...source, data: fileOf(name, text), ...more });
  const texts = ({ splits }: TaskData): readonly string[] =>
    [...splits.train, ...splits.test].map((example) => (example as Labelled).text).sort();

  it("may have a header and columns in another order, as those of GLUE have", async () => {
    const headed = await readWith("sst2.tsv", tableOf([["sentence", "label"], ...reviews]));
    expect(headed).toMatchObject({ kind: "classes", labels: ["0", "1"] });
    expect(texts(headed)).toEqual(reviews.map(([text]) => text).sort());
    const swapped = tableOf(reviews);
    const same = [
      await readWith("a.tsv", swapped, { textColumn: "1", labelColumn: "2" }),
      await readWith("b.tsv", swapped, { textColumn: "1" }),
      await readWith("c.csv", tableOf([["Film", "Grade"], ...reviews], ","), {
        labelColumn: "Grade",
      }),
      await readWith(
        "d.csv",
        tableOf([["id", "text", "class"], ...reviews.map((row, i) => [String(i), ...row])], ","),
      ),
      await readWith(
        "e.jsonl",
        reviews.map(([film, grade]) => JSON.stringify({ film, grade: Number(grade) })).join("\n"),
        { textColumn: "film", labelColumn: "grade" },
      ),
    ];
    for (const each of same) expect(each).toEqual(headed);
    const quoted = 'label,text\ngood,"one, ""two""\nthree"\nbad,x\ngood,y\nbad,z\n';
    expect(texts(await readWith("f.csv", quoted))).toContain('one, "two"\nthree');
  });

  it("are refused where the columns or the header cannot be meant, with the remedy", async () => {
    const refusal = (...given: Parameters<typeof readWith>) => refusalOf(() => readWith(...given));
    expect(await refusal("swapped.tsv", tableOf(reviews))).toBe(
      'swapped.tsv: has 20 labels for 20 texts, such as "film number 0" in line 1, and no classifier can learn that; labels come first and texts second: for another order add --label-column and --text-column, by name or number',
    );
    const twice = reviews.flatMap((row) => [row, row, row]);
    expect(await refusal("thrice.tsv", tableOf(twice))).toMatch(
      /^thrice\.tsv: has 20 labels, such as "film number 0" in line 1, and 2 different texts; labels/,
    );
    const turned = reviews.map(([text = "", label = ""]) => [label, text]);
    const headed = tableOf([["Grade", "Film"], ...turned]);
    expect(await refusal("headed.tsv", headed)).toBe(
      'headed.tsv: line 1 seems to be a header: no other line has the label "Grade"; add --header, or --no-header if it is an example',
    );
    expect(await readWith("headed.tsv", headed, { header: true })).toMatchObject({
      labels: ["0", "1"],
    });
    expect(await readWith("headed.tsv", headed, { header: false })).toMatchObject({
      labels: ["0", "1", "Grade"],
    });
    const three = tableOf(reviews.map((row) => ["x", ...row]));
    expect(await refusal("three.tsv", three)).toMatch(/^three\.tsv: has 3 columns: say by --label/);
    for (const column of ["4", "0", "-5", "grade", "__proto__"])
      expect(
        await refusal("three.tsv", three, { textColumn: "2", labelColumn: column }),
        column,
      ).toMatch(/^three\.tsv: has no column ".*" for --label-column: it has 3 \(/);
  });

  it("without a label are refused by line, whatever the form of the file", async () => {
    const refusal = (...given: Parameters<typeof readWith>) => refusalOf(() => readWith(...given));
    const turned = reviews.map(([text = "", label = ""], i) => [i % 7 === 3 ? " " : label, text]);
    const remedy =
      "has an empty label, as 2 more of 20 have: give it one, or take it out; --label-column says which column has the labels";
    const headed = [["label", "text"], ...turned];
    expect(await refusal("bare.csv", tableOf(headed, ","))).toBe(`bare.csv: line 5 ${remedy}`);
    expect(await refusal("bare.tsv", tableOf(turned))).toBe(`bare.tsv: line 4 ${remedy}`);
    const objects = turned.map(([label, text]) => JSON.stringify({ label, text })).join("\n");
    expect(await refusal("bare.jsonl", objects)).toBe(`bare.jsonl: line 4 ${remedy}`);
    const known = { labels: ["0", "1"] };
    expect(await refusal("known.tsv", tableOf(turned), known)).toBe(`known.tsv: line 4 ${remedy}`);
    expect(await refusal("one.tsv", tableOf([...turned.slice(0, 9)]))).toBe(
      "one.tsv: line 4 has an empty label: give it one, or take it out; --label-column says which column has the labels",
    );
    // With several labels a text, it may have none.
    const sets = turned.map(([label = "", text = ""]) => [`${label},2`.replace(/^ ,2$/, ""), text]);
    expect(await readWith("sets.tsv", tableOf(sets), { multiLabel: true })).toMatchObject({
      labels: ["0", "1", "2"],
    });
  });

  it("that are empty are counted before training", async () => {
    const some = reviews.map(([text = "", label = ""], i) => [label, i < 3 ? " " : text]);
    const data = await readWith("empty.tsv", tableOf(some));
    expect(describeData(data)).toContain("3 of 20 texts are empty, and count as the others");
    expect(describeEmpty(await readWith("full.tsv", tableOf(some.slice(3))))).toEqual([]);
  });

  it("are read in UTF-8, with a mark or not, in UTF-16 with one, or in what is named", async () => {
    const text = "ja\tmüde\nnein\twach\nja\tmüde\nnein\twach\nja\tmüde\n";
    const plain = await readWith("utf8.tsv", text);
    expect(await readWith("bom.tsv", `\uFEFF${text}`)).toEqual(plain);
    expect(await readWith("utf16.tsv", Buffer.from(`\uFEFF${text}`, "utf16le"))).toEqual(plain);
    const latin1 = Buffer.from(text, "latin1");
    expect(await readWith("latin1.tsv", latin1, { encoding: "latin1" })).toEqual(plain);
    for (const task of ["spam", "tags", "mlm"] as const)
      expect(await refusalOf(() => readWith("latin1.tsv", latin1, { task }))).toBe(
        "latin1.tsv: line 1 is no UTF-8 (byte 0xfc at 4): name its encoding, say latin1, or convert it to UTF-8",
      );
  });

  it("are shown before training: classes, and an example", async () => {
    const data = await readWith("shown.tsv", tableOf([["sentence", "label"], ...reviews]));
    const [classes, example] = describeData(data);
    expect(classes).toMatch(/^2 classes: [01] \d+, [01] \d+$/);
    expect(example).toMatch(/^for example, [01]: film number \d+$/);
    const many = Array.from({ length: 5000 }, (_, i) => `class ${i}\ttext ${i}\n`)
      .join("")
      .repeat(3);
    expect(
      describeData(await readWith("many.tsv", many.replaceAll("text", "one text")))[0],
    ).toMatch(/^5000 classes: .*, and 4992 more/);
    const words = await readWith("w.txt", "a/D b/N\n".repeat(5), { task: "tags" });
    expect(describeData(words)).toEqual(["2 tags: D 4, N 4", "for example: a/D b/N"]);
    expect(() =>
      requireSplits({ ...data, splits: { train: [], test: [] } } as TaskData, "x"),
    ).toThrow("x: has 0 examples: one in five is tested, so it needs 5 or more");
  });
});
