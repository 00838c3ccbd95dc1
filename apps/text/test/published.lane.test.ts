// Files in the format that SST-2 and CoNLL-2003 are published in, trained by flags alone. The sentences are those of the UCI Sentiment
// Labelled Sentences (CC BY 4.0), as the package `sentiment` has them; the news are made of a few patterns.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runApp } from "@halfstep/vitest/run-app";
import { afterAll, expect, it } from "vitest";
import { splitOf } from "../src/examples.js";
import { readSentences } from "../src/sentences.js";
import { dataPackage } from "../src/tasks.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-published-"));
afterAll(() => rmSync(folder, { recursive: true }));
const write = (name: string, lines: readonly string[]): string => {
  const path = join(folder, name);
  writeFileSync(path, `${lines.join("\n")}\n`);
  return path;
};
const small = "--device cpu --layers 1 --heads 2 --json".split(" ");
const testOf = async (name: string, ...flags: readonly string[]) => {
  const ended = await runApp("text", ["train", ...small, "--out", join(folder, name), ...flags]);
  expect(ended).toMatchObject({ code: 0 });
  return JSON.parse(ended.stdout).runs[0].test;
};

it("SST-2 reaches naive Bayes by run_classifier's command", { timeout: 300_000 }, async () => {
  const directory = join(await dataPackage("sentences"), "test", "fixtures");
  const { train, test } = splitOf(await readSentences(directory), 0);
  for (const [name, examples] of Object.entries({ train, dev: test }))
    write(`${name}.tsv`, [
      "sentence\tlabel",
      ...examples.map(({ text, label }) => `${text.replace(/\s+/g, " ")}\t${label}`),
    ]);
  const { accuracy, naiveBayes } = await testOf(
    "sst",
    ..."--task_name SST-2 --do_train --do_eval --do_lower_case --data_dir".split(" "),
    ...[folder, ..."--max_seq_length 64 --fp16 --loss_scale 128 --hidden-size 8".split(" ")],
  );
  expect(naiveBayes).toBeGreaterThan(0.75);
  expect(accuracy).toBeGreaterThanOrEqual(naiveBayes);
});

it("CoNLL-2003's columns give entities of unseen names", { timeout: 300_000 }, async () => {
  const people = ["Peter", "Anna", "Boris", "Clara", "David", "Elena", "Felix", "Greta"];
  const places = ["Brussels", "Vienna", "Oslo", "Madrid", "Dublin", "Warsaw", "Lisbon", "Prague"];
  const sentence = (i: number, from: number): string => {
    const [who, where] = [people, places].map(
      (names, j) => names[from + ((i * (j + 1) + (i >> 2)) % 4)] as string,
    ) as [string, string];
    const patterns = [
      [`${who} NNP B-NP B-PER`, "lives VBZ B-VP O", "in IN B-PP O", `${where} NNP B-NP B-LOC`],
      ["In IN B-PP O", `${where} NNP B-NP B-LOC`, `${who} NNP B-NP B-PER`, "sings VBZ B-VP O"],
      [`${who} NNP B-NP B-PER`, `Smith NNP I-NP I-PER`, "left VBD B-VP O", "early RB B-ADVP O"],
    ];
    return [...(patterns[i % 3] as string[]), ". . O O", ""].join("\n");
  };
  const news = (count: number, from: number): readonly string[] =>
    Array.from({ length: count }, (_, i) =>
      [...(i % 4 ? [] : ["-DOCSTART- -X- -X- O", ""]), sentence(i, from)].join("\n"),
    );
  const flags =
    "--task tags --token-column 1 --tag-column 4 --document-context --hidden-size 16 --max_seq_length 32 --least-count 1 --least-feature 3 --epochs 6 --batch-size 8 --lr 0.01";
  const { accuracy, entityF1, mostFrequentTag } = await testOf(
    "conll",
    ...flags.split(" "),
    ...["--data", write("eng.train", news(160, 0)), "--test-data", write("eng.testb", news(40, 4))],
  );
  expect(entityF1).toBeGreaterThan(0.8);
  expect(accuracy).toBeGreaterThan(mostFrequentTag);
});
