import { accumulationWindow, GradScaler } from "@halfstep/grad-scaler";
import { BertForSequenceClassification } from "@halfstep/models";
import { ampPrimitives, cpuRuntime } from "@halfstep/tensor";
import { describe, expect, it, test } from "vitest";
import { fastGradient } from "../src/adversary.js";
import { BagClassifier } from "../src/bag-classifier.js";
import { naiveBayesScores } from "../src/baseline.js";
import { Classifier } from "../src/classifier.js";
import { lossOf } from "../src/learner.js";
import { smallShape } from "../src/model-shape.js";
import { bertOptimizer, parameterGroups } from "../src/optimizer.js";
import { Tagger } from "../src/tagger.js";
import { WordFeatures } from "../src/word-features.js";

const vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d"];
const shape = smallShape({
  ...{ vocabulary, hiddenSize: 8, layers: 2, heads: 2, maxLength: 16, dropout: 0 },
});
const texts = [
  { ids: [2, 5, 6, 7, 3], label: 0 },
  { ids: [2, 8, 3], label: 1 },
];

describe("groups of parameters", () => {
  const model = new BertForSequenceClassification(cpuRuntime(), { ...shape, seed: 1 });
  const named = new Map([...model.namedParameters()].map(([name, each]) => [each, name]));
  const namesOf = (parameters: readonly unknown[]) =>
    parameters.map((parameter) => named.get(parameter as never) as string);

  it("decay weights alone", () => {
    const groups = parameterGroups(model, 1);
    expect(groups.map(({ decays, rate }) => [decays, rate])).toEqual([
      [true, 1],
      [false, 1],
    ]);
    const [decaying, others] = groups.map(({ parameters }) => namesOf(parameters)) as [
      string[],
      string[],
    ];
    expect(decaying.filter((name) => /bias|[nN]orm/.test(name))).toEqual([]);
    expect(others.filter((name) => !/bias$|layerNorm\.weight$/.test(name))).toEqual([]);
    expect(decaying.length + others.length).toBe(named.size);
  });

  it("learn the slower the deeper they are", () => {
    const rates = new Map(
      parameterGroups(model, 0.5).flatMap(({ parameters, rate }) =>
        namesOf(parameters).map((name) => [name, rate]),
      ),
    );
    expect(
      [
        "classifier.weight",
        "bert.pooler.dense.bias",
        "bert.encoder.layer.1.output.dense.weight",
        "bert.encoder.layer.0.output.dense.weight",
        "bert.embeddings.wordEmbeddings.weight",
      ].map((name) => rates.get(name)),
    ).toEqual([1, 1, 0.5, 0.25, 0.125]);
  });
});

describe("an adversarial perturbation", () => {
  const runtime = cpuRuntime();
  const learner = new Classifier(runtime, { shape, seed: 1, classes: 2, precision: "float32" });
  const words = learner.model.bert.embeddings.wordEmbeddings.weight;
  const gradientOf = async (scale: number): Promise<Float32Array> => {
    await runtime.step(() => lossOf(learner, texts).mul(scale).backward());
    return (await (words.grad as NonNullable<typeof words.grad>).toArray()) as Float32Array;
  };
  const forget = (): void => {
    for (const parameter of learner.model.parameters()) parameter.zeroGrad();
  };

  it("is a step of its length along the gradient, whatever the loss scale", async () => {
    const gradient = await gradientOf(1);
    const norm = Math.hypot(...gradient);
    const plain = await fastGradient(words, 0.5)?.toArray();
    forget();
    await gradientOf(2 ** 100);
    const scaled = await fastGradient(words, 0.5)?.toArray();
    forget();
    expect(plain).toEqual(scaled);
    const worst = Math.max(
      ...gradient.map((g, i) => Math.abs((0.5 * g) / norm - (plain?.[i] ?? 9))),
    );
    expect(worst).toBeLessThan(1e-6);
    expect(Math.hypot(...(plain as Float32Array))).toBeCloseTo(0.5, 6);
  });

  it("makes the loss worse than a perturbation in any other direction", async () => {
    await gradientOf(1);
    const worst = fastGradient(words, 0.5);
    const other = await runtime.step(() => {
      const [random, against] = [1, -1].map((sign) =>
        runtime.tensor(
          Float32Array.from({ length: words.size }, (_, i) => sign * Math.sin(i * i)),
          words.shape,
        ),
      ) as [typeof words, typeof words];
      const length = Math.hypot(...Array.from({ length: words.size }, (_, i) => Math.sin(i * i)));
      return [random, against].map((each) =>
        lossOf(learner, texts, { perturbation: each.mul(0.5 / length) }),
      );
    });
    const clean = await lossOf(learner, texts).item();
    const adversarial = await lossOf(learner, texts, { perturbation: worst }).item();
    forget();
    expect(adversarial).toBeGreaterThan(clean);
    for (const loss of other) expect(adversarial).toBeGreaterThan(await loss.item());
  });

  it("of gradients that overflowed has the scaler skip the step", async () => {
    const tagger = new Tagger(runtime, {
      shape,
      seed: 1,
      tags: 2,
      crf: true,
      precision: "float32",
    });
    const { optimizer } = bertOptimizer(runtime, tagger.model, {
      ...{ lr: 0.1, warmup: 0.1, steps: 10, layerDecay: 1, storage: "float32" },
    });
    const scaler = new GradScaler(ampPrimitives(runtime), { initScale: 2 ** 126 });
    const sentences = [{ ids: [2, 5, 6, 3], starts: [1, 2], tags: [0, 1], cutTags: [] }];
    const { weight } = tagger.model.bert.embeddings.wordEmbeddings;
    const before = await weight.toArray();
    const window = accumulationWindow(scaler, optimizer, { microSteps: 2 });
    await runtime.step(() => {
      window.scale(lossOf(tagger, sentences).mul(2 ** 20)).backward();
    });
    await runtime.step(() => {
      const perturbation = fastGradient(weight, 1);
      window.scale(lossOf(tagger, sentences, { perturbation })).backward();
      window.step();
    });
    expect((await scaler.drain()).map(({ status }) => status)).toEqual(["skipped"]);
    expect(await weight.toArray()).toEqual(before);
  });
});

describe("a step through the scaler", () => {
  const cases = {
    "label smoothing": { labelSmoothing: 0.1 },
    "focal loss": { focal: 2 },
    "a rate for each layer": { layerDecay: 0.5 },
    "adversarial perturbations": { adversarial: 0.5 },
    "all at once": { labelSmoothing: 0.1, layerDecay: 0.5, adversarial: 0.5 },
  };

  /** The parameters after two steps, in one row. */
  async function trainedWith(
    scale: number,
    { layerDecay = 1, adversarial = 0, ...loss }: Readonly<Record<string, number>>,
  ): Promise<number[]> {
    const runtime = cpuRuntime();
    const learner = new Classifier(runtime, {
      ...{ shape, seed: 1, classes: 2, precision: "float32" },
      ...loss,
    });
    const { optimizer } = bertOptimizer(runtime, learner.model, {
      ...{ lr: 0.01, warmup: 0.1, steps: 10, layerDecay, storage: "float32" },
    });
    const scaler = new GradScaler(ampPrimitives(runtime), { initScale: scale });
    const { weight } = learner.model.bert.embeddings.wordEmbeddings;
    for (let step = 0; step < 2; step++) {
      const window = accumulationWindow(scaler, optimizer, { microSteps: adversarial > 0 ? 2 : 1 });
      await runtime.step(() => {
        window.scale(lossOf(learner, texts)).backward();
        if (adversarial === 0) window.step();
      });
      if (adversarial > 0)
        await runtime.step(() => {
          const perturbation = fastGradient(weight, adversarial);
          window.scale(lossOf(learner, texts, { perturbation })).backward();
          window.step();
        });
    }
    expect((await scaler.drain()).map(({ status }) => status)).toEqual(["applied", "applied"]);
    const values = await Promise.all([...learner.model.parameters()].map((each) => each.toArray()));
    return values.flatMap((each) => [...each]);
  }

  it.each(Object.entries(cases))("is the same at any loss scale, with %s", async (_, options) => {
    const [plain, scaled, without] = await Promise.all([
      trainedWith(1, options),
      trainedWith(2 ** 12, options),
      trainedWith(1, {}),
    ]);
    expect(scaled).toEqual(plain);
    expect(plain).not.toEqual(without);
  });
});

describe("a bag of words beside BERT", () => {
  it("begins as naive Bayes, which learns from what each class has", () => {
    const scores = naiveBayesScores(texts, 2, vocabulary.length);
    // Class 0 has the tokens 5, 6 and 7, class 1 has 8; one is added to each of 9 counts.
    const [[rare, often], [none, once]] = [
      [Math.log(1 / 12), Math.log(2 / 12)],
      [Math.log(1 / 10), Math.log(2 / 10)],
    ] as [[number, number], [number, number]];
    const row = (token: number): number[] => [...scores.subarray(2 * token, 2 * token + 2)];
    const halves = (first: number, second: number): number[] =>
      [first - second, second - first].map((difference) => Math.fround(difference / 2));
    expect(row(5).map((x) => x.toFixed(6))).toEqual(halves(often, none).map((x) => x.toFixed(6)));
    expect(row(8).map((x) => x.toFixed(6))).toEqual(halves(rare, once).map((x) => x.toFixed(6)));
    // What no text has, and classes that are as frequent, say nothing.
    expect([1, 2, 3, 4].flatMap(row)).toEqual(Array(8).fill(0));
  });

  it("adds what its tokens say, and nothing for padding", async () => {
    const runtime = cpuRuntime();
    const tokenScores = Float32Array.from({ length: 18 }, (_, i) => i);
    const [alone, both] = [undefined, tokenScores].map((scores) =>
      new BagClassifier(runtime, { ...shape, seed: 1, numLabels: 2, tokenScores: scores }).eval(),
    ) as [BagClassifier, BagClassifier];
    const ids = runtime.tensor(Uint32Array.of(2, 5, 3, 0, 2, 6, 7, 3), [2, 4]);
    const attentionMask = runtime.tensor(Uint32Array.of(1, 1, 1, 0, 1, 1, 1, 1), [2, 4]);
    const [plain, added] = await Promise.all(
      [alone, both].map((model) => model.forward(ids, { attentionMask }).toArray()),
    );
    const differences = [...(added as Float32Array)].map((x, i) => x - (plain?.[i] as number));
    const wanted = [20, 23, 36, 40];
    expect(differences.map((x) => Math.round(x))).toEqual(wanted);
    expect(
      Math.max(...differences.map((x, i) => Math.abs(x - (wanted[i] as number)))),
    ).toBeLessThan(1e-4);
  });
});

test("a tagger looks at features of words beside their tokens", async () => {
  const runtime = cpuRuntime();
  const features = new WordFeatures(["[NONE]", "~ed", "<the"]);
  const tagger = new Tagger(runtime, {
    ...{ shape, seed: 1, tags: 2, crf: true, precision: "float32", features },
  });
  tagger.model.eval();
  const given = (...words: readonly (readonly number[])[]) => ({
    ...{ ids: [2, 5, 6, 3], starts: [1, 2], features: words },
  });
  const scoresOf = async (words: ReturnType<typeof given>): Promise<number[]> => [
    ...(await tagger.scores([words]).values.toArray()),
  ];
  const none = [0, 0, 0, 0, 0];
  const [first, again, other] = await Promise.all([
    scoresOf(given(none, none)),
    scoresOf(given(none, none)),
    scoresOf(given(none, [0, 1, 0, 2, 0])),
  ]);
  expect(again).toEqual(first);
  expect(other).not.toEqual(first);
  const groups = parameterGroups(tagger.model, 0.5);
  const { weight } = tagger.model.features as NonNullable<typeof tagger.model.features>;
  expect(groups.find(({ parameters }) => parameters.includes(weight))?.rate).toBe(0.125);
});

test("a tagger in halves keeps its field of tags in float32", () => {
  const runtime = cpuRuntime();
  const { model } = new Tagger(runtime, {
    ...{ shape, seed: 1, tags: 2, crf: true, precision: "float32" },
  });
  const dtypes = new Map(
    [...model.half().namedParameters()].map(([name, { dtype }]) => [name, dtype]),
  );
  const fields = [...dtypes.keys()].filter((name) => name.startsWith("crf."));
  expect(fields.map((name) => dtypes.get(name))).toEqual(["float32", "float32", "float32"]);
  expect(
    [...dtypes].filter(([name, dtype]) => !fields.includes(name) && dtype !== "float16"),
  ).toEqual([]);
});
