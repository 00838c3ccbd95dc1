// Models and data of others: folders of transformers, files of the CoNLL tasks, labels as numbers, a test file.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BertForSequenceClassification, BertForTokenClassification } from "@halfstep/models";
import { InferenceSession, Tensor as OrtTensor } from "@halfstep/onnxruntime";
import { cpuRuntime, noGrad, type Tensor } from "@halfstep/tensor";
import { runApp } from "@halfstep/vitest/run-app";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exportCommand } from "../src/export-command.js";
import { saveModel } from "../src/model-folder.js";
import { smallShape } from "../src/model-shape.js";
import { readTask, type TaskSource } from "../src/tasks.js";
import { BertTokenizer } from "../src/tokenizer.js";
import { openTrained, useModel } from "../src/use-model.js";
import { specialTokens } from "../src/vocabulary.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-foreign-"));
afterAll(() => rmSync(folder, { recursive: true }));
const fileOf = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const source = (task: TaskSource["task"], data: string): TaskSource => ({
  ...{ task, data, mailPart: "body", words: 60, corpus: "brown", fold: 0 },
});

const conll = `-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
German JJ B-NP B-MISC

Peter NNP B-NP B-PER
-DOCSTART- -X- -X- O
BRUSSELS NNP B-NP B-LOC
`;

describe("files of columns", () => {
  it("have words and tags where the flags say, and documents part sentences", async () => {
    const data = fileOf("eng.train", conll);
    const ner = await readTask({ ...source("tags", data), tokenColumn: 1, testData: data });
    expect(ner.labels).toEqual(["B-ORG", "O", "B-MISC", "B-PER", "B-LOC"]);
    expect(ner.splits.train).toEqual([
      { words: ["EU", "rejects", "German"], tags: [0, 1, 2] },
      { words: ["Peter"], tags: [3] },
      { words: ["BRUSSELS"], tags: [4] },
    ]);
    expect(ner.splits.test).toEqual(ner.splits.train);
    const parts = await readTask({ ...source("tags", fileOf("a.conll", conll)), tagColumn: 2 });
    expect(parts.labels).toEqual(["NNP", "VBZ", "JJ"]);
  });

  it("may be CoNLL-U's", async () => {
    const text =
      "# text = vámonos\n1-2\tvámonos\t_\t_\n1\tvamos\tir\tVERB\n2\tnos\tnosotros\tPRON\n";
    const { labels, splits } = await readTask({
      ...source("tags", fileOf("es.conllu", text)),
      testData: fileOf("test.conllu", "1\tnos\tnosotros\tPRON\n"),
    });
    expect([labels, splits.train, splits.test]).toEqual([
      ["VERB", "PRON"],
      [{ words: ["vamos", "nos"], tags: [0, 1] }],
      [{ words: ["nos"], tags: [1] }],
    ]);
  });

  it("are refused by line where they lack a column, and by tag where the test has one more", async () => {
    const short = readTask(source("tags", fileOf("short.conll", "EU B-ORG\n\nrejects\n")));
    await expect(short).rejects.toThrow("short.conll: line 3 has 1 columns");
    const ragged = "EU NNP B-ORG\nrejects VBZ\n";
    await expect(readTask(source("tags", fileOf("ragged.conll", ragged)))).rejects.toThrow(
      "ragged.conll: line 2 has 2 columns, and line 1 has 3: complete it, or say by --tag-column",
    );
    const train = fileOf("train.conll", "EU B-ORG\n");
    const testData = fileOf("test.conll", "Peter B-PER\n");
    await expect(readTask({ ...source("tags", train), testData })).rejects.toThrow(
      'test.conll: has the tag "B-PER", which is none of B-ORG',
    );
  });
});

const tokenizer = new BertTokenizer([...specialTokens, "good", "bad", "peter", "sings"]);
const shape = smallShape({
  ...{ vocabulary: tokenizer.vocabulary, hiddenSize: 8, layers: 1, heads: 2 },
  ...{ maxLength: 16, dropout: 0 },
});

/** A folder as transformers has it: nothing of this program's. */
async function foreign(task: "sentences" | "tags", labels: readonly string[]): Promise<string> {
  const directory = join(folder, task);
  mkdirSync(directory);
  const options = { ...shape, seed: 1, numLabels: labels.length };
  const model =
    task === "tags"
      ? new BertForTokenClassification(cpuRuntime(), { ...options, crf: false })
      : new BertForSequenceClassification(cpuRuntime(), options);
  await saveModel(
    directory,
    model,
    shape,
    { tokenizer },
    {
      ...{ task, labels, maxLength: 16, bag: false, crf: false },
      ...{ mailPart: "body", words: 60, corpus: "brown", fold: 0 },
    },
  );
  const path = join(directory, "config.json");
  const { halfstep: _, ...config } = JSON.parse(readFileSync(path, "utf8"));
  writeFileSync(path, JSON.stringify(config));
  return directory;
}

describe("fine-tuned models of transformers", () => {
  let classifier = "";
  beforeAll(async () => {
    classifier = await foreign("sentences", ["NEGATIVE", "POSITIVE"]);
  });

  it("have the task of their architectures, and the labels of id2label", async () => {
    expect((await openTrained(classifier)).purpose).toMatchObject({
      ...{
        task: "sentences",
        labels: ["NEGATIVE", "POSITIVE"],
        maxLength: shape.maxPositionEmbeddings,
      },
    });
    const tagger = await foreign("tags", ["O", "B-PER"]);
    const predicted = await runApp("text", [
      "predict",
      "Peter sings",
      "--model",
      tagger,
      "--device",
      "cpu",
    ]);
    expect([predicted.code, predicted.stdout]).toEqual([
      0,
      expect.stringMatching(/^Peter\/(O|B-PER) sings\/(O|B-PER)\n$/),
    ]);
  });

  it("give the same scores as an ONNX file, with padding", async () => {
    const runtime = cpuRuntime();
    const { model } = useModel(runtime, await openTrained(classifier), false);
    const ids = Uint32Array.of(2, 5, 3, 0, 2, 6, 7, 3);
    const mask = ids.map((id) => (id === 0 ? 0 : 1));
    const [tokens, attentionMask] = [ids, mask].map((each) => runtime.tensor(each, [2, 4]));
    const scores = noGrad(() => model.forward(...([tokens, { attentionMask }] as never[])));
    const wanted = await (scores as Tensor).toArray();
    const file = join(folder, "classifier.onnx");
    expect(await exportCommand({ command: "export", file, model: classifier })).toBe(0);
    const session = await InferenceSession.create(file, { intraOpNumThreads: 1 });
    const of = (each: Uint32Array) =>
      new OrtTensor("int64", BigInt64Array.from(each, BigInt), [2, 4]);
    const { logits } = await session.run({
      ...{ input_ids: of(ids), attention_mask: of(mask) },
      token_type_ids: of(new Uint32Array(8)),
    });
    await session.release();
    expect(logits?.dims).toEqual([2, 2]);
    const found = Array.from(logits?.data as ArrayLike<number>);
    for (const [i, score] of wanted.entries()) expect(found[i]).toBeCloseTo(score, 5);
  });

  it("are tested on labels as numbers, and print a confusion matrix", async () => {
    const data = fileOf("sst.tsv", "sentence\tlabel\ngood\t1\nbad\t0\ngood good\t1\n");
    const flags = ["--pretrained", classifier, "--device", "cpu"];
    const tested = await runApp("text", ["evaluate", "--data", data, ...flags, "--json"]);
    expect(tested.code, tested.stderr).toBe(0);
    const { accuracy, macroF1, confusion } = JSON.parse(tested.stdout);
    expect(confusion.labels).toEqual(["NEGATIVE", "POSITIVE"]);
    const [[right], [, alsoRight]] = confusion.counts;
    expect(accuracy).toBeCloseTo((right + alsoRight) / 3);
    expect(macroF1).toBeGreaterThanOrEqual(0);
    const without = await runApp("text", ["evaluate", ...flags]);
    expect([without.code, without.stderr]).toEqual([2, expect.stringContaining("by --data")]);
  });
});

it("either entry of a checkpoint is used, and trained further, by --key", {
  timeout: 300_000,
}, async () => {
  const bert = fileURLToPath(new URL("./golden/bert", import.meta.url));
  const rows = [
    "this film is good\tPOSITIVE",
    "this film is bad\tNEGATIVE",
    "a fine film\tPOSITIVE",
  ];
  const data = fileOf("films.tsv", `text\tlabel\n${rows.join("\n")}\n`);
  const run = async (...args: readonly string[]) => {
    const ended = await runApp("text", [...args, "--device", "cpu", "--json"]);
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    return { ...ended, result: JSON.parse(ended.stdout) };
  };
  const judge = ["evaluate", "--data", data];
  const last = await run(...judge, "--pretrained", bert);
  const average = await run(...judge, "--pretrained", bert, "--key", "ema.weights");
  expect(Math.abs(last.result.loss - average.result.loss)).toBeGreaterThan(0.01);

  const labels = fileOf(
    "three.tsv",
    `text\tlabel\n${[...rows, ...rows, "a film\tNEUTRAL", "the film\tNEUTRAL"].join("\n")}\n`,
  );
  const tuning = ["train", "--task", "sentences", "--pretrained", bert, "--key", "ema.weights"];
  const steps = ["--epochs", "1", "--batch-size", "2", "--lr", "1e-9", "--dropout", "0"];
  const train = (file: string, name: string) =>
    run(
      ...tuning,
      ...steps,
      "--no-bag",
      "--data",
      file,
      "--test-data",
      file,
      "--out",
      join(folder, name),
    );
  const tuned = await train(data, "tuned");
  expect(tuned.stderr).toContain(`weights of ${bert}: 1 layers of 8 features\n`);
  expect(tuned.result.runs[0].test.loss).toBeCloseTo(average.result.loss, 4);
  const { stderr } = await train(labels, "other");
  expect(stderr).toContain(
    "dropped: its head, which is for 2 other labels; new: classifier.weight, classifier.bias",
  );
});
