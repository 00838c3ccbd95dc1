import { type Carrier, inProcess } from "@halfstep/distributed";
import { cpuRuntime } from "@halfstep/tensor";
import { expect, it } from "vitest";
import { Classifier } from "../src/classifier.js";
import { smallShape } from "../src/model-shape.js";
import { scoreOf } from "../src/score.js";
import { trainText } from "../src/train.js";

const vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d"];
const shape = smallShape({
  ...{ vocabulary, hiddenSize: 8, layers: 1, heads: 2, maxLength: 32, dropout: 0.2 },
});
/** Of 5 to 23 tokens: the share of a rank may be shorter than the batch. */
const texts = Array.from({ length: 10 }, (_, i) => ({
  ids: [2, ...Array.from({ length: 3 + 2 * i }, (_, j) => 5 + ((i * j + i) % 4)), 3],
  label: i % 2,
}));

/** Trains a rank of a job, or alone; the loss of its model on all texts, and the hash of its parameters. */
async function trained(batchSize: number, carrier?: Carrier) {
  const runtime = cpuRuntime();
  const learner = new Classifier(runtime, { shape, seed: 1, classes: 2, precision: "float32" });
  const { rank, size } = carrier ?? { rank: 0, size: 1 };
  const summary = await trainText({
    ...{ learner, runtime, device: undefined, precision: "float32", epochs: 2, accumulate: 1 },
    ...{ batchSize, lr: 1e-2, warmup: 0.1, layerDecay: 1, adversarial: 0, seed: 3 },
    ...{ train: () => texts, test: [], isTested: false },
    ...{ wire: "float32", job: { rank, size, ranks: size, carrier } },
  });
  const { loss } = await scoreOf(
    learner,
    texts.map((text) => [text]),
  );
  return { ...summary, loss };
}

it("two ranks train as one process does, dropout included", async () => {
  const alone = await trained(6);
  const ranks = await Promise.all(
    inProcess(2, { hosts: ["a", "b"] }).map((carrier) => trained(3, carrier)),
  );
  expect(ranks[1]?.parameterSha256).toBe(ranks[0]?.parameterSha256);
  expect(ranks[0]?.steps).toBe(alone.steps);
  for (const { loss } of ranks) expect(Math.abs(loss / alone.loss - 1)).toBeLessThan(1e-4);
});
