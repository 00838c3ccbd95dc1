import { autocast, recipeOf, withRecipe } from "@halfstep/autocast";
import { GradScaler } from "@halfstep/grad-scaler";
import { BertForMaskedLM, DigitsCnn, GPT, Mlp, ResNet, UNet } from "@halfstep/models";
import { applyRecipe, type Module } from "@halfstep/nn";
import {
  Adadelta,
  Adafactor,
  Adagrad,
  Adam,
  Adamax,
  AdamW,
  ASGD,
  BertAdam,
  clipGradNorm,
  LAMB,
  Lion,
  Muon,
  NAdam,
  NovoGrad,
  RAdam,
  RMSprop,
  Rprop,
  SGD,
} from "@halfstep/optim";
import {
  ampPrimitives,
  crossEntropy,
  flatten,
  flattenByDType,
  type Runtime,
  type Tensor,
} from "@halfstep/tensor";
import { parameterSha256 } from "../../src/parameter-hash.js";

// The ledger of bits: what 20 steps of training leave in the parameters, by model, precision and way of training. A change
// that was meant to keep numbers as they are moves none of its lines.

const steps = 20;

type Precision = "float32" | "float16" | "bfloat16";
const precisions: readonly Precision[] = ["float32", "float16", "bfloat16"];
type Classifier = Module & { forward(x: Tensor): Tensor };

interface Subject {
  readonly name: string;
  readonly make: (runtime: Runtime) => Classifier;
  /** The input of a step: images or features, or ids of words below `words`. */
  readonly input: { readonly shape: readonly number[]; readonly words?: number };
  readonly classes: number;
  /** Scores to classify, of each item of the input. */
  readonly rows: number;
}

const mlp: Subject = {
  name: "MLP",
  make: (runtime) => new Mlp(runtime, { seed: 1, sizes: [48, 64, 64, 10] }),
  input: { shape: [16, 48] },
  classes: 10,
  rows: 16,
};

const subjects: readonly Subject[] = [
  mlp,
  {
    name: "DigitsCnn",
    make: (runtime) => new DigitsCnn(runtime, { seed: 1 }),
    input: { shape: [4, 28, 28, 1] },
    classes: 10,
    rows: 4,
  },
  {
    name: "ResNet",
    make: (runtime) =>
      new ResNet(runtime, { layers: [1, 1, 1], width: 8, classes: 10, stem: "cifar", seed: 1 }),
    input: { shape: [4, 16, 16, 3] },
    classes: 10,
    rows: 4,
  },
  {
    name: "BERT",
    make: (runtime) =>
      new BertForMaskedLM(runtime, {
        ...{ seed: 1, vocabSize: 40, hiddenSize: 32, numHiddenLayers: 2, numAttentionHeads: 2 },
        ...{ intermediateSize: 64, maxPositionEmbeddings: 16 },
      }),
    input: { shape: [2, 16], words: 40 },
    classes: 40,
    rows: 32,
  },
  {
    name: "GPT",
    make: (runtime) =>
      new GPT(runtime, {
        ...{ seed: 1, vocabSize: 30, blockSize: 16 },
        ...{ nLayer: 2, nHead: 2, nEmbd: 32, dropout: 0.1 },
      }),
    input: { shape: [2, 16], words: 30 },
    classes: 30,
    rows: 32,
  },
  {
    name: "U-Net",
    make: (runtime) => new UNet(runtime, { seed: 1, width: 4, classes: 3 }),
    input: { shape: [2, 16, 16, 3] },
    classes: 3,
    rows: 512,
  },
];

/** Integers below `end`, from a multiplicative congruential generator: the same on every machine. */
function integers(length: number, end: number, seed: number): Uint32Array {
  let state = (seed * 2654435761 + 12345) % 2147483647;
  return Uint32Array.from({ length }, () => {
    state = (state * 48271) % 2147483647;
    return state % end;
  });
}

const countOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

function batchOf(runtime: Runtime, { input, classes, rows }: Subject, step: number) {
  const { shape, words } = input;
  const count = countOf(shape);
  return {
    x: words
      ? runtime.tensor(integers(count, words, step), shape)
      : runtime.tensor(
          Float32Array.from(integers(count, 256, step), (value) => (value - 128) / 64),
          shape,
        ),
    labels: runtime.tensor(integers(rows, classes, 1000 + step)),
  };
}

interface Trainable {
  step(): void;
  zeroGrad(): void;
}
// What an optimizer must be for scaler and clipping; their own types say it by what they train.
type AnyOptimizer = Trainable & AdamW<never>;

interface Way {
  readonly name: string;
  readonly subject: Subject;
  readonly precision: Precision;
  readonly optimizer: (runtime: Runtime, model: Classifier) => AnyOptimizer;
  /** apex's recipe, in the place of a region of autocast. */
  readonly recipe?: "O2" | "O3";
  readonly clips?: boolean;
  /** Recordings whose gradients add up to a step. Default 1. */
  readonly accumulates?: number;
}

type Construct = new (target: never, flat: never, options: never) => unknown;

const optimizer =
  (make: unknown, options: object) =>
  (runtime: Runtime, model: Classifier): AnyOptimizer => {
    const parameters = [...model.parameters()];
    // Muon is for matrices; the ledger leaves biases as they are then.
    const trained =
      make === Muon ? parameters.filter(({ shape }) => shape.length === 2) : parameters;
    return new (make as Construct)(
      runtime.target as never,
      flatten(trained) as never,
      options as never,
    ) as AnyOptimizer;
  };

const optimizers: readonly (readonly [name: string, make: unknown, options: object])[] = [
  ["Adadelta", Adadelta, { lr: 0.5 }],
  ["Adafactor", Adafactor, { lr: 1e-2 }],
  ["Adagrad", Adagrad, { lr: 1e-2 }],
  ["Adam", Adam, { lr: 1e-2, amsgrad: true }],
  ["Adamax", Adamax, { lr: 1e-2 }],
  ["AdamW with bfloat16 moments", AdamW, { lr: 1e-2, moments: "bfloat16" }],
  ["ASGD", ASGD, { lr: 1e-2, lambd: 1e-2, t0: 4 }],
  ["BertAdam", BertAdam, { lr: 1e-2, warmup: 0.1, tTotal: 20 }],
  ["LAMB", LAMB, { lr: 1e-2 }],
  ["Lion", Lion, { lr: 1e-3 }],
  ["Muon", Muon, { lr: 1e-2 }],
  ["NAdam", NAdam, { lr: 1e-2 }],
  ["NovoGrad", NovoGrad, { lr: 1e-2 }],
  ["RAdam", RAdam, { lr: 1e-2 }],
  ["RMSprop", RMSprop, { lr: 1e-2, momentum: 0.9, centered: true }],
  ["Rprop", Rprop, { lr: 1e-3 }],
  ["SGD", SGD, { lr: 1e-2, momentum: 0.9, nesterov: true, weightDecay: 0.01 }],
];

const adamw = optimizer(AdamW, { lr: 1e-2, weightDecay: 0.01 });

export const ways: readonly Way[] = [
  ...subjects.flatMap((subject) =>
    precisions.map(
      (precision): Way => ({
        name: `${subject.name}, AdamW, clipped`,
        subject,
        precision,
        optimizer: adamw,
        clips: true,
      }),
    ),
  ),
  ...subjects.map(
    (subject): Way => ({
      name: `${subject.name}, AdamW, not clipped`,
      subject,
      precision: "float16",
      optimizer: adamw,
    }),
  ),
  ...[mlp, subjects.at(-2) as Subject].map(
    (subject): Way => ({
      name: `${subject.name}, AdamW, two recordings a step`,
      subject,
      precision: "float16",
      optimizer: adamw,
      accumulates: 2,
    }),
  ),
  ...(["O2", "O3"] as const).map(
    (recipe): Way => ({
      name: `MLP, SGD, recipe ${recipe}`,
      subject: mlp,
      precision: "float16",
      recipe,
      optimizer: (runtime, model) =>
        new SGD(
          runtime.target,
          flattenByDType(model.parameters()).map((params) => ({ params })),
          { lr: 1e-2, momentum: 0.9, storage: recipe === "O2" ? "master" : "plain" },
        ) as unknown as AnyOptimizer,
    }),
  ),
  ...optimizers.map(
    ([name, make, options]): Way => ({
      name: `MLP, ${name}`,
      subject: mlp,
      precision: "float16",
      optimizer: optimizer(make, options),
    }),
  ),
];

/** A line of the ledger: what a way of training left in the parameters, and its last loss. */
export async function lineOf(runtime: Runtime, way: Way): Promise<string> {
  const { subject, precision, clips, accumulates = 1 } = way;
  const model = subject.make(runtime);
  const recipe = way.recipe && recipeOf(way.recipe);
  if (recipe) applyRecipe(model, recipe);
  const inPrecision = (forward: () => Tensor): Tensor => {
    if (recipe) return withRecipe(recipe, forward);
    return precision === "float32" ? forward() : autocast({ dtype: precision }, forward);
  };
  const optimizer = way.optimizer(runtime, model);
  const scaler = new GradScaler(ampPrimitives(runtime), {
    enabled: precision === "float16",
    // Far too large at first, so that steps are skipped, and then it grows.
    initScale: 2 ** 24,
    growthInterval: 4,
    outcomeSchedule: false,
  });
  let loss: Tensor | undefined;
  for (let recording = 0; recording < steps * accumulates; recording++) {
    const { x, labels } = batchOf(runtime, subject, recording);
    loss = await runtime.step(() => {
      const loss = inPrecision(() =>
        crossEntropy(model.forward(x).reshape([subject.rows, subject.classes]), labels),
      );
      scaler.scale(loss).backward();
      if ((recording + 1) % accumulates === 0) {
        if (clips) {
          scaler.unscale(optimizer);
          clipGradNorm(optimizer, 1);
        }
        scaler.step(optimizer);
        scaler.update();
        optimizer.zeroGrad();
      }
      return loss;
    });
  }
  const skipped = (await scaler.drain()).filter(({ status }) => status === "skipped").length;
  const hash = (await parameterSha256(model.namedParameters())).slice(0, 16);
  const last = (await (loss as Tensor).toArray())[0] as number;
  return `${way.name} | ${precision} | ${hash} | loss ${last.toPrecision(9)} | ${skipped} skipped`;
}
