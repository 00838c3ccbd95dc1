import { GradScaler } from "@halfstep/grad-scaler";
import { BertForSequenceClassification } from "@halfstep/models";
import { ampPrimitives, cpuRuntime } from "@halfstep/tensor";
import { describe, expect, it, test } from "vitest";
import { fastGradient } from "../src/adversary.js";
import { Classifier } from "../src/classifier.js";
import { classificationLoss, ignoredLabel } from "../src/losses.js";
import { smallShape } from "../src/model-shape.js";
import { bertOptimizer, parameterGroups } from "../src/optimizer.js";
import { Tagger } from "../src/tagger.js";

const vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d"];
const shape = smallShape({
  ...{ vocabulary, hiddenSize: 8, layers: 2, heads: 2, maxLength: 16, dropout: 0 },
});
const texts = [
  { ids: [2, 5, 6, 7, 3], label: 0 },
  { ids: [2, 8, 3], label: 1 },
];

describe("the loss of classes", () => {
  const logits = [
    [2, -1, 0.5],
    [0, 3, 1],
    [1, 1, 1],
  ];
  const labels = [0, 2, 1];
  /** −log p of the label in each row. */
  const losses = logits.map((row, i) => {
    const total = Math.log(row.reduce((sum, x) => sum + Math.exp(x), 0));
    return total - (row[labels[i] as number] as number);
  });
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const lossOf = async (
    options: Parameters<typeof classificationLoss>[3],
    given: readonly number[] = labels,
  ): Promise<number> => {
    const runtime = cpuRuntime();
    const count = given.filter((label) => label !== ignoredLabel).length;
    const rows = runtime.tensor(Float32Array.from(logits.flat()), [3, 3]);
    return classificationLoss(rows, runtime.tensor(Uint32Array.from(given)), count, options).item();
  };

  it("is cross-entropy, smoothed, or focal", async () => {
    expect(await lossOf({})).toBeCloseTo(mean(losses), 6);
    const even = logits.map((row) => {
      const total = Math.log(row.reduce((sum, x) => sum + Math.exp(x), 0));
      return mean(row.map((x) => total - x));
    });
    expect(await lossOf({ labelSmoothing: 0.1 })).toBeCloseTo(
      mean(losses.map((loss, i) => 0.9 * loss + 0.1 * (even[i] as number))),
      6,
    );
    expect(await lossOf({ focal: 2 })).toBeCloseTo(
      mean(losses.map((loss) => (1 - Math.exp(-loss)) ** 2 * loss)),
      6,
    );
  });

  it("leaves rows out that have no label", async () => {
    const some = [0, ignoredLabel, 1];
    const [first, , third] = losses as [number, number, number];
    expect(await lossOf({}, some)).toBeCloseTo(mean([first, third]), 6);
    expect(await lossOf({ focal: 1 }, some)).toBeCloseTo(
      mean([first, third].map((loss) => (1 - Math.exp(-loss)) * loss)),
      6,
    );
  });
});

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
    await runtime.step(() => learner.loss(texts).mul(scale).backward());
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
      return [random, against].map((each) => learner.loss(texts, each.mul(0.5 / length)));
    });
    const clean = await learner.loss(texts).item();
    const adversarial = await learner.loss(texts, worst).item();
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
    const sentences = [{ ids: [2, 5, 6, 3], starts: [1, 2], tags: [0, 1], cut: 0 }];
    const { weight } = tagger.model.bert.embeddings.wordEmbeddings;
    const before = await weight.toArray();
    const window = scaler.window(optimizer, { microSteps: 2 });
    await runtime.step(() => {
      window.scale(tagger.loss(sentences).mul(2 ** 20)).backward();
    });
    await runtime.step(() => {
      window.scale(tagger.loss(sentences, fastGradient(weight, 1))).backward();
      window.step();
    });
    expect((await scaler.drain()).map(({ status }) => status)).toEqual(["skipped"]);
    expect(await weight.toArray()).toEqual(before);
  });
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
