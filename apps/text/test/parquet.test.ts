// Data sets of Hugging Face as they are published: Parquet files with classes as numbers, pairs, and lists of words and tags.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { afterAll, describe, expect, it } from "vitest";
import { readTask, type TaskSource } from "../src/tasks.js";
import { parquetCorpus, parquetOf, readable } from "./parquet-corpus.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-parquet-"));
afterAll(() => rmSync(folder, { recursive: true }));
const fileOf = (name: string, content: Uint8Array | string): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};
const read = (data: string, source: Partial<TaskSource> = {}) =>
  readTask({
    ...{ task: "sentences", mailPart: "body", words: 60, corpus: "brown", fold: 0, ...source },
    ...{ data, testData: data },
  });
const classLabel = (...names: readonly string[]) => ({ names, _type: "ClassLabel" });

describe("a Parquet file", () => {
  const texts = ["good film", "bad film", "good one", "ügly"];
  const text = { name: "sentence", data: texts, type: "STRING" } as const;
  const label = { name: "label", data: [1, 0, 1, 0].map(BigInt), type: "INT64" } as const;

  it("has classes with the names that it describes, else numbers", async () => {
    const named = fileOf(
      "a.parquet",
      parquetOf([text, label], { label: classLabel("neg", "pos") }),
    );
    const { labels, splits } = await read(named);
    expect(labels).toEqual(["neg", "pos"]);
    expect(splits.train).toEqual(texts.map((each, i) => ({ text: each, label: (i + 1) % 2 })));
    const plain = fileOf("b.parquet", parquetOf([text, label], undefined, { codec: "GZIP" }));
    expect((await read(plain)).labels).toEqual(["0", "1"]);
    expect((await read(named, { labelNames: ["no", "yes"] })).labels).toEqual(["no", "yes"]);
  });

  it("has pairs, several labels, and columns of any name", async () => {
    const data = fileOf(
      "c.parquet",
      parquetOf([
        { name: "premise", data: texts, type: "STRING" },
        { name: "hypothesis", data: texts.map((each) => `${each}?`), type: "STRING" },
        { name: "a", data: [true, false, true, false], type: "BOOLEAN" },
        { name: "b", data: [0, 1, 1, 1], type: "INT32" },
      ]),
    );
    const columns = { textColumn: "premise", textPairColumn: "hypothesis" };
    const pairs = await read(data, { ...columns, labelColumn: "a" });
    expect(pairs.labels).toEqual(["false", "true"]);
    expect(pairs.splits.train[0]).toEqual({ text: "good film", pair: "good film?", label: 1 });
    const several = await read(data, { ...columns, labelColumn: "a,b", multiLabel: true });
    expect(several.splits.train).toMatchObject([0, 1, 0, 1].map(() => ({})));
    expect(several.splits.train[2]).toMatchObject({ labels: [0, 1] });
    await expect(read(data)).rejects.toThrow(
      'c.parquet: has no column "label": it has premise, hypothesis, a, b, and flags',
    );
  });

  it("has words and tags in lists, as JSON Lines do", async () => {
    const sentences = [
      { tokens: ["Anna", "lives"], ner_tags: [1, 0] },
      { tokens: [], ner_tags: [] },
      { tokens: ["in", "Oslo", "."], ner_tags: [0, 2, 0] },
    ];
    const list = (name: string, type: object) => [
      { name, repetition_type: "OPTIONAL", num_children: 1, converted_type: "LIST" } as const,
      { name: "list", repetition_type: "REPEATED", num_children: 1 } as const,
      { name: "element", repetition_type: "OPTIONAL", ...type } as const,
    ];
    const bytes = parquetOf(
      (["tokens", "ner_tags"] as const).map((name) => ({
        name,
        data: sentences.map((sentence) => sentence[name]),
      })),
      {
        tokens: { feature: { dtype: "string", _type: "Value" }, _type: "Sequence" },
        ner_tags: { feature: classLabel("O", "B-PER", "B-LOC"), _type: "List" },
      },
      {
        schema: [
          { name: "root", num_children: 2 },
          ...list("tokens", { type: "BYTE_ARRAY", converted_type: "UTF8" }),
          ...list("ner_tags", { type: "INT32" }),
        ],
      },
    );
    const expected = [
      { words: ["Anna", "lives"], tags: [1, 0] },
      { words: ["in", "Oslo", "."], tags: [0, 2, 0] },
    ];
    const tagged = await read(fileOf("d.parquet", bytes), { task: "tags" });
    expect(tagged).toMatchObject({ labels: ["O", "B-PER", "B-LOC"], splits: { train: expected } });
    const lines = sentences.map((sentence) => JSON.stringify(sentence)).join("\n");
    const plain = await read(fileOf("d.jsonl", lines), { task: "tags" });
    expect(plain.labels).toEqual(["1", "0", "2"]);
    const named = await read(join(folder, "d.jsonl"), {
      ...{ task: "tags", labelNames: ["O", "B-PER", "B-LOC"], tagColumn: "ner_tags" },
    });
    expect(named.splits.train).toEqual(expected);
    await expect(
      read(join(folder, "d.jsonl"), { task: "tags", tagColumn: "tokens" }),
    ).resolves.toBeDefined();
    await expect(read(join(folder, "d.jsonl"), { task: "tags", tagColumn: "no" })).rejects.toThrow(
      'd.jsonl: line 1 needs "tokens", a list of words, and "no", a list of as many tags',
    );
  });

  it("is refused where its labels are no classes", async () => {
    const scores = fileOf(
      "stsb.parquet",
      parquetOf([text, { name: "label", data: [0.5, 2.25, 5, 3.75], type: "FLOAT" }]),
    );
    await expect(read(scores)).rejects.toThrow(
      /has labels that are numbers such as 0.5, which is a regression/,
    );
    const features = { label: classLabel("neg", "pos") };
    const hidden = { ...label, data: [-1n, -1n, -1n, -1n] };
    await expect(read(fileOf("test.parquet", parquetOf([text, hidden], features)))).rejects.toThrow(
      "row 1 has the class -1, and 2 have names: -1 stands for labels that are not published",
    );
    const empty = { ...text, data: ["x", undefined, "y", "z"] as never };
    await expect(read(fileOf("gap.parquet", parquetOf([empty, label])))).rejects.toThrow(
      'gap.parquet: row 2 needs "label", a label, and "sentence", a string',
    );
    const times = { name: "label", data: [1, 2, 3, 4].map((day) => new Date(day)) } as const;
    await expect(read(fileOf("t.parquet", parquetOf([text, times])))).rejects.toThrow(
      'the column "label" has no texts, numbers or lists of them',
    );
  });
});

describe("hostile Parquet files", () => {
  it("are refused in a line by their names", async () => {
    expect(parquetCorpus.size).toBeGreaterThan(50);
    const wrong: string[] = [];
    for (const [name, bytes] of parquetCorpus) {
      const path = fileOf("hostile.parquet", bytes);
      const error: unknown = await read(path).catch((reason: unknown) => reason);
      const isRefused =
        error instanceof DataError &&
        error.message.startsWith(`${path}: `) &&
        !error.message.includes("\n") &&
        error.message.length - path.length < 400;
      if (!isRefused) wrong.push(`${name}: ${error instanceof Error ? error.stack : "read"}`);
    }
    expect(wrong).toEqual([]);
  });

  it("with any byte changed are read or refused, in bounded time and memory", async () => {
    const before = process.resourceUsage().maxRSS;
    for (let at = 4; at < readable.length - 8; at += 9)
      for (const value of [0, 0xff]) {
        const error = await read(fileOf("changed.parquet", readable.with(at, value))).catch(
          (reason: unknown) => reason,
        );
        if (error instanceof Error)
          expect(error, `${at}: ${error.stack}`).toBeInstanceOf(DataError);
      }
    // KiB.
    expect(process.resourceUsage().maxRSS - before).toBeLessThan(2 ** 18);
  });
});
