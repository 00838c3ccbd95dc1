import { loadTorchStateDict, type StateDict, torchStateDict } from "@halfstep/nn";
import { cpuRuntime, noGrad, type Runtime, ShapeError, type Tensor } from "@halfstep/tensor";
import { expect, test } from "vitest";
import {
  BertForMaskedLM,
  BertForSequenceClassification,
  BertForTokenClassification,
  BertModel,
} from "../index.js";

const tiny = {
  vocabSize: 13,
  hiddenSize: 8,
  numHiddenLayers: 2,
  numAttentionHeads: 2,
  intermediateSize: 12,
  maxPositionEmbeddings: 8,
  initializerRange: 0.3,
};

const ids = (runtime: Runtime, rows: readonly (readonly number[])[]): Tensor =>
  runtime.tensor(Uint32Array.from(rows.flat()), [rows.length, rows[0]?.length ?? 0]);

test("BERT base and large have as many parameters as published", () => {
  expect(BertModel.parameterCount()).toBe(109_482_240);
  expect(
    BertModel.parameterCount({
      hiddenSize: 1024,
      numHiddenLayers: 24,
      numAttentionHeads: 16,
      intermediateSize: 4096,
    }),
  ).toBe(335_141_888);
});

test("the parameters that are counted are those that are made", () => {
  const model = new BertModel(cpuRuntime(), { seed: 1, ...tiny });
  const made = [...model.parameters()].reduce((sum, { size }) => sum + size, 0);
  expect(BertModel.parameterCount(tiny)).toBe(made);
});

test.each(["float32", "float16", "bfloat16"] as const)(
  "padding changes nothing in %s, whatever its tokens are",
  async (dtype) => {
    const runtime = cpuRuntime();
    const model = new BertForTokenClassification(runtime, { seed: 2, ...tiny }).store(dtype).eval();
    const [alone, padded, otherwise] = await Promise.all(
      [
        () => model.forward(ids(runtime, [[3, 4, 5, 6]])),
        ...[
          [0, 0, 0],
          [9, 12, 7],
        ].map(
          (padding) => () =>
            model.forward(
              ids(runtime, [
                [3, 4, 5, 6, ...padding],
                [1, 1, 1, 1, 1, 1, 1],
              ]),
              {
                attentionMask: ids(runtime, [
                  [1, 1, 1, 1, 0, 0, 0],
                  [0, 0, 0, 0, 0, 0, 0],
                ]),
              },
            ),
        ),
      ].map((run) => noGrad(run).toArray()),
    );
    const [short, first, second] = [alone, padded, otherwise].map((values) => [
      ...(values as Float32Array).slice(0, 8),
    ]) as [number[], number[], number[]];
    expect(first).toEqual(second);
    const worst = Math.max(...short.map((value, i) => Math.abs(value - (first[i] as number))));
    expect(worst).toBeLessThan({ float32: 1e-6, float16: 5e-3, bfloat16: 5e-2 }[dtype]);
    // A sequence without any token, as the last batch may have, stays finite too.
    expect([...(padded as Float32Array)].every(Number.isFinite)).toBe(true);
  },
);

test("scores of given places are those among all", async () => {
  const runtime = cpuRuntime();
  const model = new BertForMaskedLM(runtime, { seed: 1, ...tiny }).eval();
  const tokens = ids(runtime, [
    [1, 2, 3],
    [4, 5, 6],
  ]);
  const positions = runtime.tensor(Uint32Array.of(4, 0));
  const [all, some] = await Promise.all(
    noGrad(() => [model.forward(tokens), model.forward(tokens, { positions })]).map((y) =>
      y.toArray(),
    ),
  );
  const rows = [4, 0].flatMap((place) => [
    ...(all as Float32Array).slice(place * 13, (place + 1) * 13),
  ]);
  expect([...(some as Float32Array)]).toEqual(rows);
});

test("a perturbation moves the word embeddings for one pass", async () => {
  const runtime = cpuRuntime();
  const [model, moved] = [1, 1].map((seed) => new BertModel(runtime, { seed, ...tiny }).eval()) as [
    BertModel,
    BertModel,
  ];
  const tokens = ids(runtime, [[3, 4, 3]]);
  const { weight } = moved.embeddings.wordEmbeddings;
  const perturbation = runtime.tensor(
    Float32Array.from({ length: 13 * 8 }, (_, i) => Math.sin(i) / 4),
    [13, 8],
  );
  const before = await noGrad(() => model.forward(tokens)).toArray();
  const during = await noGrad(() => model.forward(tokens, { perturbation })).toArray();
  const after = await noGrad(() => model.forward(tokens)).toArray();
  noGrad(() => weight.assign(weight.add(perturbation)));
  expect(await noGrad(() => moved.forward(tokens)).toArray()).toEqual(during);
  expect(after).toEqual(before);
  expect(during).not.toEqual(before);
});

test("features of tokens are added to their embeddings", async () => {
  const runtime = cpuRuntime();
  const model = new BertModel(runtime, { seed: 1, ...tiny }).eval();
  const [same, given] = [
    [3, 4, 3],
    [3, 5, 3],
  ].map((row) => ids(runtime, [row])) as [Tensor, Tensor];
  const { weight } = model.embeddings.wordEmbeddings;
  // What makes token 5 of token 4, at the second place alone.
  const difference = noGrad(() => weight.narrow(0, 5, 1).sub(weight.narrow(0, 4, 1)));
  const values = new Float32Array(24);
  values.set(await difference.toArray(), 8);
  const tokenFeatures = runtime.tensor(values, [1, 3, 8]);
  const [plain, moved, wanted] = (await Promise.all(
    noGrad(() => [
      model.forward(same),
      model.forward(same, { tokenFeatures }),
      model.forward(given),
    ]).map((y) => y.toArray()),
  )) as [Float32Array, Float32Array, Float32Array];
  const worst = (x: Float32Array): number =>
    Math.max(...x.map((value, i) => Math.abs(value - (wanted[i] as number))));
  expect(worst(moved)).toBeLessThan(1e-5);
  expect(worst(plain)).toBeGreaterThan(1e-2);
  expect(() => model.forward(same, { tokenFeatures: runtime.zeros([1, 3, 4]) })).toThrow(
    "tokenFeatures [1,3,8], not [1,3,4]",
  );
});

test("a checkpoint with old names and another head loads into a model for tags", async () => {
  const runtime = cpuRuntime();
  const state = await torchStateDict(new BertForMaskedLM(runtime, { seed: 1, ...tiny }));
  const old: StateDict = Object.fromEntries(
    Object.entries(state).map(([name, saved]) => [
      name
        .replace("LayerNorm.weight", "LayerNorm.gamma")
        .replace("LayerNorm.bias", "LayerNorm.beta"),
      saved,
    ]),
  );
  const model = new BertForTokenClassification(runtime, { seed: 2, ...tiny, crf: true });
  const { missing, unexpected } = loadTorchStateDict(model, old, { strict: false });
  expect(missing).toEqual([
    "classifier.weight",
    "classifier.bias",
    "crf.start_transitions",
    "crf.end_transitions",
    "crf.transitions",
  ]);
  expect(unexpected.every((name) => name.startsWith("cls.predictions."))).toBe(true);
  const loaded = await torchStateDict(model);
  const bodies = [state, loaded].map((each) =>
    Object.entries(each).filter(([name]) => name.startsWith("bert.")),
  );
  expect(bodies[1]).toEqual(bodies[0]);
  expect(bodies[0]?.length).toBeGreaterThan(30);
});

test("a body alone loads into a classifier, and the other way round", async () => {
  const runtime = cpuRuntime();
  const body = await torchStateDict(new BertModel(runtime, { seed: 1, ...tiny }));
  const classifier = new BertForSequenceClassification(runtime, { seed: 2, ...tiny });
  const { missing } = loadTorchStateDict(classifier, body, { strict: false });
  expect(missing).toEqual(["classifier.weight", "classifier.bias"]);
  const again = new BertModel(runtime, { seed: 3, ...tiny });
  loadTorchStateDict(again, await torchStateDict(classifier), { strict: false });
  expect(await torchStateDict(again)).toEqual(body);
});

test("inputs of other shapes are refused by name", () => {
  const runtime = cpuRuntime();
  const model = new BertModel(runtime, { seed: 1, ...tiny });
  expect(() => model.forward(ids(runtime, [[1, 2, 3, 4, 5, 6, 7, 8, 9]]))).toThrow("at most 8");
  expect(() =>
    model.forward(ids(runtime, [[1, 2]]), { attentionMask: ids(runtime, [[1, 1, 1]]) }),
  ).toThrow(ShapeError);
  expect(() =>
    model.forward(ids(runtime, [[1, 2]]), { tokenTypeIds: runtime.zeros([1, 2]) }),
  ).toThrow("tokenTypeIds are float32");
});
