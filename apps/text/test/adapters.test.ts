// A classifier from low-rank adapters and a new head on a BERT of hidden words, by flags and from a folder of PEFT's.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BertForMaskedLM } from "@halfstep/models";
import { torchStateDict } from "@halfstep/nn";
import { writeSafetensorsFile } from "@halfstep/safetensors/node";
import { cpuRuntime } from "@halfstep/tensor";
import { safetensorsOf } from "@halfstep/trainer";
import { runApp } from "@halfstep/vitest/run-app";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { saveModel } from "../src/model-folder.js";
import { smallShape } from "../src/model-shape.js";
import { parseOptions } from "../src/options.js";
import { predict } from "../src/predict.js";
import { BertTokenizer } from "../src/tokenizer.js";
import { openTrained, type UsableModel } from "../src/use-model.js";
import { specialTokens } from "../src/vocabulary.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-text-adapters-"));
afterAll(() => rmSync(folder, { recursive: true }));
const inFolder = (name: string): string => join(folder, name);
const runtime = cpuRuntime();
const tokenizer = new BertTokenizer([...specialTokens, "fine", "poor", "a", "b", "c", "d"]);
const shape = smallShape({
  ...{ vocabulary: tokenizer.vocabulary, hiddenSize: 8, layers: 2, heads: 2 },
  ...{ maxLength: 16, dropout: 0 },
});

beforeAll(async () => {
  const model = new BertForMaskedLM(runtime, { ...shape, seed: 1 });
  await saveModel(
    inFolder("base"),
    model,
    shape,
    { tokenizer },
    {
      ...{ task: "mlm", labels: [], maxLength: 16, bag: false, crf: false },
      ...{ mailPart: "body", words: 60, corpus: "brown", fold: 0 },
    },
  );
});

describe("adapters", { timeout: 600_000 }, () => {
  it("are trained with a head, and saved merged and for PEFT", async () => {
    const rows = Array.from(
      { length: 40 },
      (_, i) => `${i % 2 ? "bad" : "good"}\t${i % 2 ? "poor" : "fine"} ${"abcd"[i % 4]}`,
    );
    writeFileSync(inFolder("own.tsv"), rows.join("\n"));
    const flags =
      "--task sentences --lora 2 --lora-alpha 4 --lora-targets query,value,dense --no-bag --lr 0.02 --epochs 15 --dropout 0 --batch-size 8 --device cpu --json";
    const ended = await runApp("text", [
      ...["train", ...flags.split(" "), "--data", inFolder("own.tsv")],
      ...["--pretrained", inFolder("base"), "--out", inFolder("out")],
    ]);
    expect(ended).toMatchObject({ code: 0 });
    const [run] = JSON.parse(ended.stdout).runs;
    expect(run.test.accuracy).toBe(1);
    // Adapters of 2 · (4 · 32 + 2 · 24) numbers, a new pooler of 72 and a head of 18; two moments each.
    expect(run.optimizerBytes).toBe(2 * run.parameterBytes);
    const config = JSON.parse(readFileSync(inFolder("out/adapter/adapter_config.json"), "utf8"));
    expect(config).toMatchObject({
      ...{ task_type: "SEQ_CLS", r: 2, lora_alpha: 4, target_modules: ["query", "value", "dense"] },
      ...{ modules_to_save: ["classifier", "bert.pooler"] },
      base_model_name_or_path: inFolder("base"),
    });
    const texts = ["fine a", "poor b", "c", "d"];
    const linesOf = async (saved: UsableModel): Promise<readonly string[]> =>
      (await predict({ runtime, saved, half: false }, texts)).map(({ line }) => line);
    const merged = await linesOf(await openTrained(inFolder("out")));
    const added = await linesOf(
      await openTrained(inFolder("base"), { peft: inFolder("out/adapter") }),
    );
    expect(added).toEqual(merged);
    expect(added.slice(0, 2)).toEqual(["good\tfine a", "bad\tpoor b"]);
  });

  it("of another task or model are refused by name", async () => {
    const other = new BertForMaskedLM(runtime, { ...shape, hiddenSize: 4, seed: 1 });
    const state = safetensorsOf(await torchStateDict(other));
    await writeSafetensorsFile(inFolder("base/model.safetensors"), state);
    const config = JSON.parse(readFileSync(inFolder("base/config.json"), "utf8"));
    writeFileSync(inFolder("base/config.json"), JSON.stringify({ ...config, hidden_size: 4 }));
    const saved = await openTrained(inFolder("base"), { peft: inFolder("out/adapter") });
    await expect(predict({ runtime, saved, half: false }, ["a"])).rejects.toThrow(
      /out\/adapter has adapters of another model/,
    );
    const path = inFolder("out/adapter/adapter_config.json");
    const adapter = JSON.parse(readFileSync(path, "utf8"));
    writeFileSync(path, JSON.stringify({ ...adapter, task_type: "CAUSAL_LM" }));
    await expect(openTrained(inFolder("base"), { peft: inFolder("out/adapter") })).rejects.toThrow(
      /has the task_type CAUSAL_LM: SEQ_CLS and TOKEN_CLS are supported/,
    );
  });
});

it("need a model to adapt, with labels", () => {
  const refusal = (flags: string): unknown => {
    try {
      return parseOptions(["train", ...flags.split(" ")]);
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(refusal("--task spam --lora 8")).toMatch(/--lora adapts a model that is there/);
  expect(refusal("--task mlm --lora 8 --pretrained x")).toMatch(/not for mlm/);
  expect(refusal("--task spam --lora 8 --pretrained x --adversarial 1")).toMatch(/--lora freezes/);
});
