import { autocast } from "@halfstep/autocast";
import { GradScaler } from "@halfstep/grad-scaler";
import { BertForMaskedLM, DigitsCnn, GPT, Mlp, resnet18, resnet20, UNet } from "@halfstep/models";
import type { Module } from "@halfstep/nn";
import { AdamW, clipGradNorm } from "@halfstep/optim";
import {
  ampPrimitives,
  crossEntropy,
  flatten,
  Generator,
  type Plan,
  type Runtime,
  type Tensor,
} from "@halfstep/tensor";

/** Storage of activations; parameters are float32 in all. */
export type Precision = "float32" | "float16" | "bfloat16";
export const precisions: readonly Precision[] = ["float32", "float16", "bfloat16"];

/** A model that plans are made for. */
export interface Reference {
  readonly name: string;
  make(runtime: Runtime): {
    readonly model: Module & { forward(x: Tensor): Tensor };
    readonly input: Tensor;
  };
}

const images = (runtime: Runtime, batch: number, size: number, channels: number): Tensor =>
  runtime.zeros([batch, size, size, channels]);
const tokens = (runtime: Runtime, batch: number, length: number): Tensor =>
  runtime.tensor(new Uint32Array(batch * length), [batch, length]);

/** The reference models, as deep as they are trained, and narrower where that makes no other plan. */
export const references: readonly Reference[] = [
  {
    name: "MLP 784-512-512-10, batch 128",
    make: (runtime) => ({
      model: new Mlp(runtime, { seed: 0, sizes: [784, 512, 512, 10] }),
      input: runtime.zeros([128, 784]),
    }),
  },
  {
    name: "DigitsCnn, batch 128",
    make: (runtime) => ({
      model: new DigitsCnn(runtime, { seed: 0 }),
      input: images(runtime, 128, 28, 1),
    }),
  },
  {
    name: "ResNet-20, 32×32, batch 64",
    make: (runtime) => ({
      model: resnet20(runtime, { seed: 0 }),
      input: images(runtime, 64, 32, 3),
    }),
  },
  {
    name: "ResNet-18 of width 16, 224×224, batch 8",
    make: (runtime) => ({
      model: resnet18(runtime, { seed: 0, width: 16 }),
      input: images(runtime, 8, 224, 3),
    }),
  },
  {
    name: "BERT-small of width 128, 16 × 128 tokens",
    make: (runtime) => ({
      model: new BertForMaskedLM(runtime, {
        seed: 0,
        vocabSize: 2048,
        hiddenSize: 128,
        numHiddenLayers: 4,
        numAttentionHeads: 2,
        intermediateSize: 512,
        maxPositionEmbeddings: 128,
      }),
      input: tokens(runtime, 16, 128),
    }),
  },
  {
    name: "GPT of 6 layers of 192, 8 × 256 tokens",
    make: (runtime) => ({
      model: new GPT(runtime, {
        ...{ seed: 0, vocabSize: 65, blockSize: 256 },
        ...{ nLayer: 6, nHead: 3, nEmbd: 192, dropout: 0.1 },
      }),
      input: tokens(runtime, 8, 256),
    }),
  },
  {
    name: "U-Net of width 8, 64×64, batch 4",
    make: (runtime) => ({
      model: new UNet(runtime, { seed: 0, width: 8 }),
      input: images(runtime, 4, 64, 3),
    }),
  },
];

/** What there is to choose about a training step of a reference model. */
export interface StepChoices {
  readonly precision: Precision;
  /** Whether the norm of all gradients is limited. */
  readonly clips: boolean;
  /** Batches whose gradients add up in one recording. */
  readonly microBatches: number;
}

/** AMP training steps of a model: loss scaling in float16, AdamW. A step returns its last loss. */
export function stepsOf(
  runtime: Runtime,
  { make }: Reference,
): (choices: StepChoices) => () => Tensor {
  const { model, input } = make(runtime);
  const optimizer = new AdamW(runtime.target, flatten(model.parameters()), { lr: 1e-3 });
  const forward = (): Tensor => {
    const scores = model.forward(input);
    const rows = scores.reshape([-1, scores.shape.at(-1) as number]);
    return crossEntropy(rows, runtime.tensor(new Uint32Array(rows.shape[0] as number)));
  };
  return ({ precision, clips, microBatches }) => {
    const scaler = new GradScaler(ampPrimitives(runtime), {
      enabled: precision === "float16",
      outcomeSchedule: false,
    });
    const backward = (): Tensor => {
      const loss = precision === "float32" ? forward() : autocast({ dtype: precision }, forward);
      scaler.scale(loss).backward();
      return loss;
    };
    return () => {
      for (let batch = 1; batch < microBatches; batch++) backward();
      const loss = backward();
      if (clips) {
        scaler.unscale(optimizer);
        clipGradNorm(optimizer, 1);
      }
      scaler.step(optimizer);
      scaler.update();
      optimizer.zeroGrad();
      return loss;
    };
  };
}

/**
 * What `make` returns, where parameters that are drawn at random are zeros. Plans do not depend on numbers, and to draw those of the
 * reference models takes as long as to plan their steps.
 */
export function undrawn<T>(make: () => T): T {
  const drawn = Generator.prototype as Pick<Generator, "normal" | "uniform">;
  const { normal, uniform } = drawn;
  drawn.normal = () => 0;
  drawn.uniform = () => 0;
  try {
    return make();
  } finally {
    Object.assign(drawn, { normal, uniform });
  }
}

/** The plan of a step in each precision, gradients clipped. Nothing is computed. */
export function plansOf(runtime: Runtime, reference: Reference): Record<Precision, Plan> {
  const stepOf = undrawn(() => stepsOf(runtime, reference));
  const planIn = (precision: Precision): Plan =>
    runtime.plan(stepOf({ precision, clips: true, microBatches: 1 }));
  return {
    float32: planIn("float32"),
    float16: planIn("float16"),
    bfloat16: planIn("bfloat16"),
  };
}
