// Commands of run_classifier's README with other names, on files in the format of GLUE.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { glueData, glueNames } from "../src/glue.js";
import { parseOptions } from "../src/options.js";
import { readTask } from "../src/tasks.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-glue-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Files of a task, with these lines to train on and to test on. */
function filesOf(task: string, train: readonly string[], dev = train, name = "dev.tsv"): string {
  const directory = join(folder, task);
  mkdirSync(directory);
  writeFileSync(join(directory, "train.tsv"), `\uFEFF${train.join("\n")}\n`);
  writeFileSync(join(directory, name), `${dev.join("\n")}\n`);
  return directory;
}

const read = (task: string, directory: string) =>
  readTask({
    ...{ task: "sentences", mailPart: "body", words: 60, corpus: "brown", fold: 0 },
    ...glueData(task, directory),
  });

describe("files of GLUE", () => {
  it("have single texts, with a header or without", async () => {
    const sst = ["sentence\tlabel", "fine and nice \t1", "poor and sad \t0"];
    expect(await read("SST-2", filesOf("SST-2", sst))).toEqual({
      ...{ kind: "classes", labels: ["0", "1"] },
      splits: {
        train: [
          { text: "fine and nice ", label: 1 },
          { text: "poor and sad ", label: 0 },
        ],
        test: [
          { text: "fine and nice ", label: 1 },
          { text: "poor and sad ", label: 0 },
        ],
      },
    });
    const cola = ["gj04\t1\t\tThe sailors rode.", "gj04\t0\t*\tSailors the rode."];
    const { splits } = await read("cola", filesOf("CoLA", cola));
    expect(splits.train).toEqual([
      { text: "The sailors rode.", label: 1 },
      { text: "Sailors the rode.", label: 0 },
    ]);
  });

  it("have pairs, in columns that their headers name", async () => {
    const pairs: Readonly<Record<string, readonly [string, string, string]>> = {
      MRPC: [
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        '1\t7\t8\tHe said "yes\tHe agreed',
        "0\t9\t10\tNo\tYes",
      ],
      RTE: [
        "index\tsentence1\tsentence2\tlabel",
        '0\tHe said "yes\tHe agreed\tentailment',
        "1\tNo\tYes\tnot_entailment",
      ],
      QNLI: [
        "index\tquestion\tsentence\tlabel",
        '0\tHe said "yes\tHe agreed\tentailment',
        "1\tNo\tYes\tnot_entailment",
      ],
      QQP: [
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
        '0\t1\t2\tHe said "yes\tHe agreed\t1',
        "1\t3\t4\tNo\tYes\t0",
      ],
    };
    for (const [task, lines] of Object.entries(pairs)) {
      const { splits } = await read(task, filesOf(task, lines));
      const texts = splits.train.map((each) => each as { text: string; pair: string });
      expect(texts.map(({ text, pair }) => [text, pair])).toEqual([
        ['He said "yes', "He agreed"],
        ["No", "Yes"],
      ]);
    }
  });

  it("have labels in the last column, of files with different columns", async () => {
    const train = "index\tsentence1\tsentence2\tlabel1\tgold_label";
    const dev = "index\tsentence1\tsentence2\tlabel1\tlabel2\tgold_label";
    const directory = filesOf(
      "MNLI",
      [train, "0\ta\tb\tneutral\tentailment", "1\tc\td\tneutral\tcontradiction"],
      [dev, "0\te\tf\tneutral\tneutral\tcontradiction"],
      "dev_matched.tsv",
    );
    const { labels, splits } = await read("MNLI", directory);
    expect(labels).toEqual(["contradiction", "entailment"]);
    expect(splits.test).toEqual([{ text: "e", pair: "f", label: 0 }]);
  });
});

describe("run_classifier's command", () => {
  const command = (line: string) => parseOptions(line.trim().split(/\s+/));
  const bert = join(folder, "bert-base-uncased");
  mkdirSync(bert);

  it("of its README means what it means there", () => {
    const options = command(`train --task_name MRPC --do_train --do_eval --do_lower_case
      --data_dir glue/MRPC/ --bert_model ${bert} --max_seq_length 128 --train_batch_size 32
      --learning_rate 2e-5 --num_train_epochs 3.0 --output_dir /tmp/mrpc_output/`);
    expect(options).toMatchObject({
      ...{ command: "train", task: "sentences", isTraining: true, isEvaluating: true },
      ...{ data: "glue/MRPC/train.tsv", testData: "glue/MRPC/dev.tsv", lowerCase: true },
      ...{ textColumn: "#1 String", textPairColumn: "#2 String", labelColumn: "Quality" },
      ...{ pretrained: bert, maxLength: 128, batchSize: 32, lr: 2e-5, epochs: 3, bag: false },
      ...{ out: "/tmp/mrpc_output/", precision: "float32" },
    });
  });

  it("has run_classifier's defaults, and divides a batch by the accumulation", () => {
    const common = `train --task_name sst-2 --data_dir d --bert_model ${bert}`;
    expect(command(`${common} --fp16 --gradient_accumulation_steps 4 --no_cuda`)).toMatchObject({
      ...{ epochs: 3, lr: 5e-5, batchSize: 8, accumulate: 4, maxLength: 128, dropout: 0.1 },
      ...{ precision: "float16", device: "cpu", out: "runs/text/sst-2", warmup: 0.1 },
    });
    expect(() => command(`${common} --gradient_accumulation_steps 5`)).toThrow(
      "--train_batch_size 32 is no multiple of --gradient_accumulation_steps 5",
    );
  });

  it("needs what belongs together, in one line", () => {
    const cases: readonly (readonly [string, string])[] = [
      ["train", "name one task"],
      ["train --task spam --task_name RTE --data_dir d", "name one task"],
      ["train --task_name RTE", "--task_name and --data_dir belong together"],
      ["train --task spam --data_dir d", "--task_name and --data_dir belong together"],
      ["train --task_name SNLI --data_dir d", `is none of ${glueNames.join(", ")}`],
      ["train --task_name STS-B --data_dir d", "scores pairs by numbers"],
      ["train --task spam --bert_model bert-huge", "there is no such folder"],
      [`train --task spam --bert_model ${bert} --pretrained x`, "--bert_model is --pretrained"],
    ];
    for (const [line, message] of cases) expect(() => command(line)).toThrow(message);
  });
});

it("a loss scale without a precision means float16", () => {
  const precisionOf = (flags: string): unknown => {
    const options = parseOptions(["train", "--task", "spam", ...flags.split(" ")]);
    return options.command === "train" && [options.precision, options.staticLossScale];
  };
  expect(precisionOf("--loss_scale 128")).toEqual(["float16", 128]);
  expect(precisionOf("--loss_scale 0")).toEqual(["float16", undefined]);
  expect(precisionOf("--init-scale 4")).toEqual(["float16", undefined]);
  expect(precisionOf("--precision float32 --loss_scale 128")).toEqual(["float32", 128]);
});
