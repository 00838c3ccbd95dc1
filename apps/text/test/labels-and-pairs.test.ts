// Texts with several labels, pairs of texts, weights of classes, and sentences that see their document.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuRuntime } from "@halfstep/tensor";
import { runApp } from "@halfstep/vitest/run-app";
import { afterAll, describe, expect, it } from "vitest";
import { answersOf, decision } from "../src/answers.js";
import { bertInputs } from "../src/batches.js";
import { Classifier } from "../src/classifier.js";
import { LabelSetClassifier } from "../src/label-set-classifier.js";
import { lossOf } from "../src/learner.js";
import { smallShape } from "../src/model-shape.js";
import { readTask, type TaskSource } from "../src/tasks.js";
import { BertTokenizer } from "../src/tokenizer.js";
import { specialTokens } from "../src/vocabulary.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-labels-"));
afterAll(() => rmSync(folder, { recursive: true }));
const fileOf = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const read = (source: Partial<TaskSource>) =>
  readTask({
    ...{ task: "sentences", mailPart: "body", words: 60, corpus: "brown", fold: 0, ...source },
  });

const tokenizer = new BertTokenizer([...specialTokens, ..."abcdefgh"]);
const [cls, sep] = [tokenizer.ids["[CLS]"], tokenizer.ids["[SEP]"]];
const shape = smallShape({
  ...{ vocabulary: tokenizer.vocabulary, hiddenSize: 8, layers: 1, heads: 2 },
  ...{ maxLength: 16, dropout: 0 },
});
const runtime = cpuRuntime();

describe("texts with several labels", () => {
  const wanted = {
    ...{ kind: "labels", labels: ["loud", "rude"] },
    splits: {
      train: [
        { text: "one", labels: [0, 1] },
        { text: "two", labels: [] },
        { text: "three", labels: [1] },
        { text: "four", labels: [0] },
      ],
    },
  };
  const files = {
    "a.tsv": ["rude, loud\tone", "\ttwo", "rude\tthree", "loud\tfour"],
    "b.csv": ["id,comment,loud,rude", "7,one,1,1", "8,two,0,0", "9,three,0,1", "3,four,1,0"],
    "c.jsonl": [["rude", "loud"], [], ["rude"], ["loud"]].map((labels, i) =>
      JSON.stringify({ labels, text: ["one", "two", "three", "four"][i] }),
    ),
    "d.csv": ["label,text", '"1,0",one', ",two", "1,three", "0,four"],
  };
  const columns: Readonly<Record<string, Partial<TaskSource>>> = {
    "a.tsv": { header: false },
    "b.csv": { labelColumn: "loud,rude", textColumn: "comment" },
    "d.csv": { labelNames: ["loud", "rude"] },
  };

  it.each(Object.entries(files))("are read from %s", async (name, lines) => {
    const data = fileOf(name, lines.join("\n"));
    const given = { multiLabel: true, data, testData: data, ...columns[name] };
    expect(await read(given)).toMatchObject(wanted);
  });

  it("are refused where the labels are probably something else", async () => {
    const few = read({ multiLabel: true, data: fileOf("few.tsv", "x\tone\nx\ttwo\n") });
    await expect(few).rejects.toThrow("few.tsv: has 1 labels, and two or more are wanted");
    const many = read({ multiLabel: true, data: fileOf("many.tsv", "a, b\tone\nc\ttwo\n") });
    await expect(many).rejects.toThrow("many.tsv: has 3 labels for 2 texts");
  });

  it("have each label decided alone, and doubtful ones are known", async () => {
    const learner = new LabelSetClassifier(runtime, {
      ...{ shape, seed: 1, classes: 3, precision: "float32" },
    });
    const values = runtime.tensor([0.3, -2, 0.05, -0.2, 4, 0.1], [2, 3]);
    const answers = await answersOf(learner, decision(learner, { values }, 0.2), [
      { ids: [] },
      { ids: [] },
    ]);
    expect(answers).toEqual([
      { labels: [1, 0, 1], isSure: false },
      { labels: [0, 1, 1], isSure: false },
    ]);
    const sure = await answersOf(learner, decision(learner, { values }, 0.04), []);
    expect(sure.map(({ isSure }) => isSure)).toEqual([true, true]);
  });
});

it("labels that are numbers are in their order, and have the names of flags", async () => {
  const rows = Array.from({ length: 24 }, (_, i) => `${i % 12}\ttext ${i}`).join("\n");
  const data = fileOf("numbers.tsv", rows);
  expect((await read({ data })).labels).toEqual(Array.from({ length: 12 }, (_, i) => `${i}`));
  const names = Array.from({ length: 12 }, (_, i) => `name ${i}`);
  const named = await read({ data, testData: data, labelNames: names });
  expect(named.labels).toEqual(names);
  expect(named.splits.train[11]).toEqual({ text: "text 11", label: 11 });
  await expect(read({ data, labelNames: names.slice(1) })).rejects.toThrow(
    'numbers.tsv: line 12 has the label "11", which is none of name 1',
  );
});

describe("pairs", () => {
  const ids = (letters: string): number[] =>
    [...letters].map((letter) => tokenizer.vocabulary.indexOf(letter));

  it("are encoded as BERT's, and the longer text is cut", () => {
    const encode = (length: number) => tokenizer.encodePair("a b c d", "e f", length);
    expect(encode(16)).toEqual({
      ...{ ids: [cls, ...ids("abcd"), sep, ...ids("ef"), sep], second: 6 },
    });
    expect(encode(8).ids).toEqual([cls, ...ids("abc"), sep, ...ids("ef"), sep]);
    expect(encode(6).ids).toEqual([cls, ...ids("ab"), sep, ...ids("e"), sep]);
    expect(tokenizer.encodePair("a", "b c d e", 6).ids).toEqual([
      cls,
      ...ids("a"),
      sep,
      ...ids("bc"),
      sep,
    ]);
  });

  it("have token types, which change what a model says", async () => {
    const batch = [tokenizer.encodePair("a b", "c", 16), tokenizer.encode("a", 16)];
    const config = new Classifier(runtime, { shape, seed: 1, classes: 2, precision: "float32" })
      .model.bert.config;
    const { tokenTypeIds, inputIds } = bertInputs(runtime, batch, config);
    expect(inputIds.shape).toEqual([2, 16]);
    expect([...((await tokenTypeIds?.toArray()) ?? [])].slice(0, 17)).toEqual(
      [0, 0, 0, 0, 1, 1].concat(Array(11).fill(0)),
    );
    expect(bertInputs(runtime, batch.slice(1), config)).not.toHaveProperty("tokenTypeIds");
    const one = { ...config, typeVocabSize: 1 };
    expect(bertInputs(runtime, batch, one)).not.toHaveProperty("tokenTypeIds");
  });
});

it("weights of classes change the loss of training, and not that of tests", async () => {
  const learner = (weights?: Float32Array) =>
    new Classifier(runtime, { shape, seed: 1, classes: 2, precision: "float32", weights });
  const batch = [
    { ...tokenizer.encode("a b", 16), label: 0 },
    { ...tokenizer.encode("c d", 16), label: 1 },
  ];
  const [plain, weighted] = [learner(), learner(Float32Array.of(9, 1))];
  expect(await lossOf(weighted, batch).item()).not.toBe(await lossOf(plain, batch).item());
  for (const { model } of [plain, weighted]) model.eval();
  expect(await lossOf(weighted, batch).item()).toBe(await lossOf(plain, batch).item());
});

describe("sentences in sight of their document", () => {
  const conll = "-DOCSTART- O\n\na X\nb X\n\nc Y\n\nd X\n\n-DOCSTART- O\n\ne Y\n";

  it("know those around them, up to -DOCSTART-", async () => {
    const data = fileOf("documents.conll", conll);
    const { splits } = await read({ task: "tags", data, testData: data, documentContext: true });
    const sentences = [["a", "b"], ["c"], ["d"]];
    expect(splits.train).toEqual([
      { words: ["a", "b"], tags: [0, 0], context: { sentences, place: 0 } },
      { words: ["c"], tags: [1], context: { sentences, place: 1 } },
      { words: ["d"], tags: [0], context: { sentences, place: 2 } },
      { words: ["e"], tags: [1], context: { sentences: [["e"]], place: 0 } },
    ]);
  });

  it("are encoded with the nearest words that fit, of both sides alike", () => {
    const sentences = [["a", "b"], ["c"], ["d"], ["e", "f", "g"]];
    const encode = (place: number, length: number) => {
      const { ids, starts } = tokenizer.encodeWords(sentences[place] as string[], length, {
        context: { sentences, place },
      });
      return [
        ids
          .map((id) => tokenizer.vocabulary[id])
          .slice(1, -1)
          .join(""),
        starts,
      ];
    };
    expect(encode(1, 16)).toEqual(["abcdefg", [3]]);
    expect(encode(1, 6)).toEqual(["abcd", [3]]);
    expect(encode(0, 6)).toEqual(["abcd", [1, 2]]);
    expect(encode(3, 4)).toEqual(["ef", [1, 2]]);
  });
});

describe("the program", { timeout: 600_000 }, () => {
  const tiny =
    "--task sentences --device cpu --hidden-size 8 --layers 1 --heads 2 --max_seq_length 16 --train_batch_size 8 --least-count 1 --num_train_epochs 2 --json";
  const train = (out: string, ...flags: readonly string[]) =>
    runApp("text", ["train", ...tiny.split(" "), "--out", join(folder, out), ...flags]);
  const predict = (model: string, ...texts: readonly string[]) =>
    runApp("text", ["predict", "--device", "cpu", "--model", join(folder, model), ...texts]);

  it("learns labels with weights, shows their figures, and tells those of texts", async () => {
    const lines = Array.from({ length: 30 }, (_, i) =>
      JSON.stringify({
        labels: [...(i % 2 ? ["rude"] : []), ...(i % 5 ? [] : ["loud"])],
        text: `${i % 2 ? "poor" : "fine"} ${i % 5 ? "calm" : "noise"} ${i}`,
      }),
    );
    const data = fileOf("labels.jsonl", lines.join("\n"));
    const flags = ["--multi-label", "--class-weights", "balanced", "--label-smoothing", "0.1"];
    const ended = await train("labels", "--data", data, ...flags);
    expect(ended).toMatchObject({ code: 0 });
    expect(ended.stderr).toMatch(/2 labels: rude \d+, loud \d+/);
    expect(JSON.parse(ended.stdout).runs[0].test).toEqual({
      ...{ accuracy: expect.any(Number), loss: expect.any(Number), microF1: expect.any(Number) },
      ...{ macroF1: expect.any(Number), exactMatch: expect.any(Number) },
    });
    const report = readFileSync(join(folder, "labels/report.html"), "utf8");
    expect(report).toMatch(/<h2>Classes<\/h2>[^§]*<td class="text">rude<\/td>/);
    const config = JSON.parse(readFileSync(join(folder, "labels/config.json"), "utf8"));
    expect(config.problem_type).toBe("multi_label_classification");
    const said = await predict("labels", "--half", "poor noise 1", "fine calm 2");
    expect(said.stdout).toMatch(/^(|rude|loud|loud,rude)\tpoor noise 1\n\S*\tfine calm 2\n$/);
    const again = await runApp("text", [
      ...["evaluate", "--device", "cpu", "--model", join(folder, "labels"), "--data", data],
    ]);
    expect(again.stdout).toMatch(/micro F1 .*\n.*texts.*precision.*recall.*F1\nloud +6 /);
  });

  it("learns pairs of a task of GLUE by run_classifier's command, and says what is rare", async () => {
    const rows = Array.from({ length: 30 }, (_, i) =>
      [i, `a b ${i}`, i % 6 ? "a b" : "c d", i % 6 ? "entailment" : "not_entailment"].join("\t"),
    );
    const file = ["index\tsentence1\tsentence2\tlabel", ...rows].join("\n");
    fileOf("train.tsv", file);
    fileOf("dev.tsv", file);
    const flags = ["--task_name", "RTE", "--data_dir", folder, "--do_train", "--do_eval"];
    const common = tiny.split(" ").slice(2);
    const ended = await runApp("text", [
      ...["train", ...flags, ...common, "--output_dir", join(folder, "rte"), "--loss_scale", "128"],
    ]);
    expect(ended).toMatchObject({ code: 0 });
    expect(ended.stderr).toContain(
      "unbalanced: always entailment is right in 83.3 %, and not_entailment is 5 times rarer",
    );
    expect(ended.stderr).toContain("for example, not_entailment: a b 0 | c d");
    const [run] = JSON.parse(ended.stdout).runs;
    expect(run).toMatchObject({ precision: "float16", finalScale: 128, steps: 8 });
    const report = readFileSync(join(folder, "rte/report.html"), "utf8");
    expect(report).toContain("<h2>Confusions</h2>");
    const alone = await runApp("text", [
      ...["train", ...flags.slice(0, 4), "--do_eval", "--device", "cpu", "--json"],
      ...["--output_dir", join(folder, "rte")],
    ]);
    expect(JSON.parse(alone.stdout)).toMatchObject({ examples: 30 });
    const said = await predict("rte", "a b\tc d");
    expect(said.stdout).toMatch(/^(not_)?entailment\ta b\tc d\n$/);
  });
});
