import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSafetensors } from "@halfstep/safetensors";
import { type Ended, runApp } from "@halfstep/vitest/run-app";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

// On the CPU, with models that are too small to learn much: what is tested is the program.

const folder = mkdtempSync(join(tmpdir(), "halfstep-text-cli-"));
afterAll(() => rmSync(folder, { recursive: true }));

const inFolder = (name: string): string => join(folder, name);
const rows = Array.from({ length: 20 }, (_, i) =>
  i % 2 === 0 ? `good\tfine and nice number ${i}` : `bad\tpoor and sad number ${i}`,
);
writeFileSync(inFolder("own.tsv"), rows.join("\n"));
writeFileSync(inFolder("own.txt"), "the/D dog/N barks/V ./.\na/D cat/N sleeps/V ./.\n".repeat(8));

const tiny =
  "--device cpu --hidden-size 8 --layers 1 --heads 2 --max_seq_length 16 --train_batch_size 4 --least-count 1 --least-feature 1 --learning_rate 0.01".split(
    " ",
  );
const text = runApp.bind(undefined, "text");
const train = (out: string, ...flags: readonly string[]): Promise<Ended> =>
  text(["train", ...tiny, "--out", inFolder(out), "--json", ...flags]);
const own = ["--task", "sentences", "--data", inFolder("own.tsv")];

const lastLine = ({ stderr }: Ended): string => stderr.trimEnd().split("\n").at(-1) ?? "";

describe("classes of one's own", { timeout: 600_000 }, () => {
  const flags = [...own, ..."--num_train_epochs 3 --gradient_accumulation_steps 2".split(" ")];
  const extras = "--adversarial 0.5 --layer-decay 0.8 --label-smoothing 0.1 --dropout 0.1";
  let whole: Ended;
  beforeAll(async () => {
    whole = await train("own", ...flags, ...extras.split(" "), "--save-every", "3");
  }, 600_000);

  it("are learnt, with all that can be asked for", () => {
    expect(whole).toMatchObject({ code: 0 });
    const { task, runs } = JSON.parse(whole.stdout);
    expect([task, runs.length]).toEqual(["sentences", 1]);
    expect(runs[0]).toMatchObject({ precision: "float32", steps: 6, appliedSteps: 6 });
    expect(runs[0].test).toEqual({
      accuracy: expect.any(Number),
      macroF1: expect.any(Number),
      loss: expect.any(Number),
      naiveBayes: expect.any(Number),
    });
    expect(whole.stderr).toMatch(/counting: naive Bayes \d+\.\d\d %/);
    expect(whole.stderr).toMatch(/2 classes: (good|bad) \d+, (good|bad) \d+/);
    const report = readFileSync(inFolder("own/report.html"), "utf8");
    expect(report.match(/<pre>(fine and nice|poor and sad) number \d+<\/pre>/g)?.length).toBe(4);
  });

  it("are learnt without a test by --do_train alone", async () => {
    const flags = ["--do_train", "--num_train_epochs", "1"];
    const trained = await train("untested", ...own, ...flags);
    expect(trained).toMatchObject({ code: 0 });
    expect(trained.stderr).not.toMatch(/error|NaN/);
    const { runs } = JSON.parse(trained.stdout);
    expect(runs[0]).toMatchObject({ isTested: false, test: { loss: null } });
    writeFileSync(inFolder("none.tsv"), "");
    const none = ["--model", inFolder("untested"), "--data", inFolder("none.tsv")];
    const empty = await text(["evaluate", ...none, "--device", "cpu"]);
    expect(empty).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(empty)).toMatch(/none\.tsv: has no/);
  });

  it("go on after a stop with the bits of training that was never stopped", async () => {
    const { parameterSha256 } = JSON.parse(whole.stdout).runs[0];
    const log = readFileSync(inFolder("own/metrics.jsonl"), "utf8");
    rmSync(inFolder("own/checkpoints/step-00000006"), { recursive: true });
    const resumed = await train(
      "own",
      ...flags,
      ...extras.split(" "),
      ..."--save-every 3 --resume auto".split(" "),
    );
    expect(resumed.stderr).toContain("after step 3");
    expect(JSON.parse(resumed.stdout).runs[0].parameterSha256).toBe(parameterSha256);
    expect(readFileSync(inFolder("own/metrics.jsonl"), "utf8")).toBe(log);
  });

  it("need the same flags to go on", async () => {
    const other = await train("own", ...flags, "--resume", "auto");
    expect(other).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(other)).toMatch(/^error: .*: go on with the same flags$/);
  });

  it("keep their names when training goes on", async () => {
    const other = rows.map((row) => row.replace(/^good/, "alright"));
    const data = inFolder("own.tsv");
    writeFileSync(data, other.join("\n"));
    const resumed = await train(
      "own",
      ...[...flags, ...extras.split(" "), "--save-every", "3", "--resume", "auto"],
    );
    writeFileSync(data, rows.join("\n"));
    expect(resumed).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(resumed)).toMatch(
      /was saved with data that has labels bad,good, not alright,bad: restore the data, or train anew without --resume$/,
    );
  });

  it("are kept as transformers keeps a BERT", () => {
    const config = JSON.parse(readFileSync(inFolder("own/config.json"), "utf8"));
    const vocabulary = readFileSync(inFolder("own/vocab.txt"), "utf8").trimEnd().split("\n");
    expect(config).toMatchObject({
      ...{ model_type: "bert", hidden_size: 8, num_hidden_layers: 1, intermediate_size: 16 },
      ...{ vocab_size: vocabulary.length, id2label: { 0: "bad", 1: "good" } },
    });
    const { tensors } = readSafetensors(readFileSync(inFolder("own/model.safetensors")));
    expect(tensors["bert.embeddings.word_embeddings.weight"]?.shape).toEqual([
      vocabulary.length,
      8,
    ]);
    expect(tensors["classifier.weight"]?.shape).toEqual([2, 8]);
  });

  it("are gone on from by others: the head is dropped, as the terminal says", async () => {
    const three = Array.from({ length: 30 }, (_, i) => `${["a", "b", "c"][i % 3]},"text ${i}"`);
    writeFileSync(inFolder("three.csv"), ["label,text", ...three].join("\r\n"));
    const other = ["--task", "spam", "--data", inFolder("three.csv"), "--max-steps", "1"];
    const ended = await train("three", ...other, "--pretrained", inFolder("own"));
    expect(ended).toMatchObject({ code: 0 });
    expect(ended.stderr).toMatch(
      /dropped: its head, which is for 2 other labels; new: .*classifier\.weight/,
    );
    expect(ended.stderr).toMatch(
      /3 classes: [abc] \d+, [abc] \d+, [abc] \d+\n.*for example, [abc]: text/,
    );
  });

  it("are refused in a line where columns are swapped or bytes are no text", async () => {
    const swapped = rows.map((row) => row.split("\t").reverse().join("\t")).join("\n");
    writeFileSync(inFolder("swapped.tsv"), swapped);
    const refused = await train("swapped", "--task", "spam", "--data", inFolder("swapped.tsv"));
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(refused)).toMatch(
      /^error: .*swapped\.tsv: has 20 labels for 20 texts, .*--text-column/,
    );
    const none = await train("none", "--task", "spam", "--encoding", "latin-99");
    expect(none.code).toBe(2);
    expect(lastLine(none)).toMatch(/there is no such encoding/);
  });

  it("are told of texts behind the flags and on standard input, in halves too", async () => {
    const flags = ["predict", "--model", inFolder("own"), "--device", "cpu"];
    const [given, piped] = await Promise.all([
      text([...flags, "fine and nice", "poor and sad"]),
      text([...flags, "--half", "--json"], { input: "fine and nice\n\npoor and sad\n" }),
    ]);
    expect(given).toMatchObject({ code: 0 });
    expect(given.stdout).toMatch(/^(good|bad)\tfine and nice\n(good|bad)\tpoor and sad\n$/);
    const lines = piped.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    // A line without words has an answer, too: those of others would move up otherwise.
    expect(lines.length).toBe(3);
    expect(lines[1]).toMatchObject({ text: "", labels: [expect.any(String)] });
    expect(lines.map(({ line }) => line).join("\n")).toBe(
      given.stdout.trimEnd().replace("\n", `\n${lines[1].line}\n`),
    );
  });

  it("are tested again by evaluate, and by --do_eval alone", async () => {
    const test = ["--data", inFolder("own.tsv"), "--json"];
    const [again, alone] = await Promise.all([
      text(["evaluate", "--model", inFolder("own"), "--device", "cpu", ...test]),
      train("own", ...own, "--do_eval"),
    ]);
    expect(JSON.parse(again.stdout)).toMatchObject({ task: "sentences", examples: 20 });
    expect(JSON.parse(alone.stdout)).toEqual(JSON.parse(again.stdout));
    // The app's own texts have other labels.
    const unnamed = await text(["evaluate", "--model", inFolder("own"), "--device", "cpu"]);
    expect(unnamed).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(unnamed)).toBe(
      `error: ${inFolder("own")} was trained on data of your own: name what to test it on by --data`,
    );
  });
});

describe("hidden words and tags", { timeout: 600_000 }, () => {
  it("are learnt one after the other: tags go on from the model of hidden words", async () => {
    writeFileSync(inFolder("lines.txt"), "the dog barks .\na cat sleeps .\n".repeat(8));
    const pre = await train("mlm", "--task", "mlm", "--data", inFolder("lines.txt"));
    expect(pre).toMatchObject({ code: 0 });
    const told = await text([
      "predict",
      "--model",
      inFolder("mlm"),
      "--device",
      "cpu",
      "the dog [MASK] .",
    ]);
    expect(told.stdout).toMatch(/^the dog \S+ \.\n$/);
    const init = ["--pretrained", inFolder("mlm")];
    const replaced = await train("mlm", "--task", "mlm", ...init);
    expect(replaced).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(replaced)).toMatch(/mlm has the model of --pretrained, which training would/);
    const tags = await train("tags", "--task", "tags", "--data", inFolder("own.txt"), ...init);
    expect(tags.stderr).toMatch(
      /weights of .*mlm: 1 layers of 8 features; dropped: its head, which is for another task; new: classifier/,
    );
    expect(JSON.parse(tags.stdout).runs[0].test).toMatchObject({
      mostFrequentTag: 1,
      accuracy: expect.any(Number),
    });
    const tagged = await text([
      "predict",
      "--model",
      inFolder("tags"),
      "--device",
      "cpu",
      "the cat barks.",
    ]);
    expect(tagged.stdout).toMatch(/^the\/\S+ cat\/\S+ barks\/\S+ \.\/\S+\n$/);
  });

  it("of words beyond the model's length come from further windows, in tests as well", async () => {
    const short = "--task tags --num_train_epochs 8 --max_seq_length 8 --train_batch_size 4";
    // Each word has its tag: a model that sees all of them in training learns them.
    writeFileSync(inFolder("long.txt"), "a/D b/N c/V d/D e/N f/V g/X h/Y\n".repeat(10));
    const trained = await train("short", ...short.split(" "), "--data", inFolder("long.txt"));
    expect(trained).toMatchObject({ code: 0 });
    const model = ["--model", inFolder("short"), "--device", "cpu"];
    const words = "a b c d e f g h";
    const [shown, json, tested] = await Promise.all([
      text(["predict", ...model, words, "a b"]),
      text(["predict", ...model, "--json", "--half", `${words} ${words} ${words}`]),
      text(["evaluate", ...model, "--data", inFolder("long.txt"), "--json"]),
    ]);
    expect(shown.stdout).toBe("a/D b/N c/V d/D e/N f/V g/X h/Y\na/D b/N\n");
    const { labels } = JSON.parse(json.stdout);
    expect(labels.join("")).toBe("DNVDNVXY".repeat(3));
    const { accuracy, confusion } = JSON.parse(tested.stdout);
    expect(accuracy).toBe(1);
    expect(confusion.counts.flat().reduce((sum: number, count: number) => sum + count, 0)).toBe(80);
  });

  it("in float16 need a loss scale that adapts", async () => {
    const scaleOf = (...flags: readonly string[]) =>
      train(
        `scale${flags.join("")}`,
        ..."--task tags --fp16 --num_train_epochs 10 --train_batch_size 2".split(" "),
        ...["--data", inFolder("own.txt"), ...flags],
      );
    const [fixed, adapting] = [
      await scaleOf("--loss_scale", `${2 ** 32}`),
      await scaleOf("--init-scale", `${2 ** 32}`),
    ].map(({ stdout }) => JSON.parse(stdout).runs[0]);
    expect(fixed).toMatchObject({ appliedSteps: 0, finalScale: 2 ** 32 });
    expect(adapting.skippedSteps).toBeGreaterThan(0);
    expect(adapting.skippedSteps).toBeLessThan(adapting.steps / 2);
    expect(adapting.finalScale).toBeLessThan(2 ** 32);
    expect(adapting.test.loss).toBeLessThan(fixed.test.loss);
  });

  it("are refused without a model, in one line", async () => {
    const ended = await text(["predict", "--model", inFolder("none"), "text"]);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(ended)).toMatch(/config\.json: is not there: check the path/);
  });
});

describe("cross-validation", { timeout: 600_000 }, () => {
  it("trains five models, and those that are done are not trained again", async () => {
    const flags = [...own, ..."--num_train_epochs 1 --fold all".split(" ")];
    const all = await train("folds", ...flags);
    expect(all).toMatchObject({ code: 0 });
    const { runs, settings } = JSON.parse(all.stdout);
    expect(runs.length).toBe(5);
    expect(settings).toMatchObject({ task: "sentences", fold: "all", epochs: 1, bag: true });
    expect(settings).toMatchObject({ max_seq_length: 16, lr: 0.01, limit: null });
    expect(runs[0].hyperparameters.optimizer).toMatchObject({ betas: [0.9, 0.999], lr: 0.01 });
    const again = await train("folds", ...flags, "--resume", "auto");
    expect(JSON.parse(again.stdout)).toEqual(JSON.parse(all.stdout));
    expect(again.stderr).not.toContain("to train on");
    writeFileSync(inFolder("folds/fold-3/summary.json"), '{"runs":[{}]}');
    const broken = await train("folds", ...flags, "--resume", "auto");
    expect(broken).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(broken)).toMatch(/fold-3\/summary\.json is no summary of a run: restore it/);
  });
});
