import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CRF } from "@halfstep/models";
import { Generator, uniform } from "@halfstep/nn";
import { argmax, cpuRuntime } from "@halfstep/tensor";
import { afterAll, describe, expect, it } from "vitest";
import { answersOf, decision } from "../src/answers.js";
import type { Learner, Scores } from "../src/learner.js";
import { saveModel } from "../src/model-folder.js";
import { smallShape } from "../src/model-shape.js";
import { predict } from "../src/predict.js";
import { prepareTask } from "../src/prepare.js";
import type { TaskData } from "../src/tasks.js";
import { BertTokenizer } from "../src/tokenizer.js";
import { openTrained, useModel } from "../src/use-model.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-text-answers-"));
afterAll(() => rmSync(folder, { recursive: true }));

const runtime = cpuRuntime();
const noise = (seed: number, size: number): Float32Array =>
  uniform([size], new Generator(seed), -1, 1);

describe("a decision with a margin", () => {
  const rows: Pick<Learner<never>, "decide" | "labelsOf"> = {
    decide: ({ values }) => argmax(values, -1),
    labelsOf: (decided) => Array.from(decided, (label) => [label]),
  };

  it("is sure where the best score wins by more", async () => {
    const values = runtime.tensor(Float32Array.of(1, 3, 1, 2, 2.2, 0, 5, 5, -5), [3, 3]);
    const sure = async (margin: number) =>
      (await answersOf(rows, decision(rows, { values }, margin), [] as never)).map(
        ({ isSure }) => isSure,
      );
    expect(await sure(0.1)).toEqual([true, true, false]);
    expect(await sure(0.25)).toEqual([true, false, false]);
    expect(await sure(2.5)).toEqual([false, false, false]);
  });

  it("of tags that are decided together stays whatever scores are off by less than half of it", async () => {
    const [sentences, length, tags, margin] = [200, 7, 4, 0.5];
    const crf = new CRF(runtime, tags, { generator: new Generator(3) });
    const mask = runtime.tensor(
      Uint32Array.from({ length: sentences * length }, (_, i) =>
        i % length <= Math.floor(i / length) % length ? 1 : 0,
      ),
      [sentences, length],
    );
    const paths: Pick<Learner<never>, "decide" | "labelsOf"> = {
      decide: ({ values }) => crf.decode(values, { mask }).tags,
      labelsOf: (decided) =>
        Array.from({ length: sentences }, (_, i) => [
          ...decided.slice(i * length, i * length + (i % length) + 1),
        ]),
    };
    const clean = noise(1, sentences * length * tags);
    const scores = (off: Float32Array): Scores => ({
      values: runtime.tensor(
        clean.map((x, i) => 2 * x + 0.499 * margin * (off[i] as number)),
        [sentences, length, tags],
      ),
      mask,
    });
    const told = (off: Float32Array) =>
      answersOf(paths, decision(paths, scores(off), margin), [] as never);
    const answers = await told(new Float32Array(clean.length));
    const sure = answers.filter(({ isSure }) => isSure).length;
    expect([sure > 20, sure < 180]).toEqual([true, true]);
    let changed = 0;
    for (let seed = 2; seed < 12; seed++) {
      // As far off as it may be.
      const others = await told(noise(seed, clean.length).map(Math.sign));
      const differs = answers.map((answer, i) => answer.labels.join() !== others[i]?.labels.join());
      expect(differs.filter((isOther, i) => isOther && answers[i]?.isSure)).toEqual([]);
      changed += differs.filter(Boolean).length;
    }
    expect(changed).toBeGreaterThan(20);
  });
});

describe("a model in halves", () => {
  const vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ..."abcdefgh"];
  const tokenizer = new BertTokenizer(vocabulary);
  const shape = smallShape({
    ...{ vocabulary, hiddenSize: 8, layers: 1, heads: 2, maxLength: 16, dropout: 0 },
  });
  const texts = Array.from({ length: 40 }, (_, i) =>
    Array.from({ length: 2 + (i % 5) }, (_, j) => vocabulary[5 + ((i * i + 3 * j * i) % 8)]).join(
      " ",
    ),
  );
  const settings = { maxLength: 16, bag: false, crf: true, seed: 1, precision: "float32" };
  const examples = texts.map((text, i) => ({ text, label: i % 3 }));
  const tagged = texts.map((text) => {
    const words = text.split(" ");
    return { words, tags: words.map((_, j) => j % 3) };
  });
  const data: Readonly<Record<"sentences" | "tags", TaskData>> = {
    sentences: { kind: "classes", labels: ["x", "y", "z"], splits: { train: [], test: examples } },
    tags: { kind: "tags", labels: ["x", "y", "z"], splits: { train: [], test: tagged } },
  };

  it.each(["sentences", "tags"] as const)(
    "has %s decided in float32 that are close",
    async (task) => {
      const { model } = prepareTask(runtime, data[task], tokenizer, { ...settings, shape });
      const directory = join(folder, task);
      await saveModel(
        directory,
        model,
        shape,
        { tokenizer },
        {
          ...{ ...settings, task, labels: ["x", "y", "z"] },
          ...{ mailPart: "body", words: 60, corpus: "brown", fold: 0 },
        },
      );
      const saved = await openTrained(directory);
      const whole = await predict({ runtime, saved, half: false }, texts);
      const closeOf = async (margin: number): Promise<number> => {
        const said = await predict({ runtime, saved, half: true, margin }, texts);
        if (margin > 0.01)
          expect(said.map(({ line }) => line)).toEqual(whole.map(({ line }) => line));
        return said.filter(({ close }) => close).length;
      };
      const counts: number[] = [];
      for (const margin of [0, 0.05, 0.1, 0.2, 0.25, 0.3, 0.35, 1e3])
        counts.push(await closeOf(margin));
      expect(counts).toEqual([...counts].sort((a, b) => a - b));
      expect([counts[0], counts.at(-1)]).toEqual([0, texts.length]);
      expect(new Set(counts).size).toBeGreaterThan(2);
      expect(whole.some((prediction) => "close" in prediction)).toBe(false);

      // What is tested is told the same.
      const half = useModel(runtime, saved, true, data[task]);
      const single = useModel(runtime, saved, false, data[task]);
      const referee = { margin: 1e3, open: () => single.learner };
      const [judged, exact, alone] = [
        await half.evaluate({ referee }),
        await single.evaluate(),
        await half.evaluate(),
      ];
      expect(judged).toEqual({ ...alone, accuracy: exact.accuracy, close: 40 });
      expect(alone).not.toHaveProperty("close");
    },
  );
});
