import type { UNet } from "@halfstep/models";
import { argmax, crossEntropy, noGrad, type Runtime } from "@halfstep/tensor";
import { inPrecision, type TrainingPrecision } from "@halfstep/trainer";
import { ignored } from "./masks.js";
import type { Scene } from "./scene.js";
import { Confusion, type Scores } from "./scores.js";
import { coveringTiles, type Encoding } from "./tiles.js";

export interface Evaluation {
  readonly runtime: Runtime;
  readonly precision: TrainingPrecision;
  /** In evaluation mode. */
  readonly model: UNet;
  readonly scenes: readonly Scene[];
  readonly classes: readonly string[];
  readonly tile: number;
  readonly batchSize: number;
  readonly encoding?: Encoding | undefined;
}

export interface Judged extends Scores {
  /** Mean cross-entropy of the pixels in nats. */
  readonly loss: number;
}

/** Scores with what they are counted from. */
export interface JudgedPixels extends Judged {
  readonly confusion: Confusion;
}

/** Scores a network on scenes, tile by tile, in its training precision. */
export async function judge(evaluation: Evaluation): Promise<JudgedPixels> {
  const { runtime, precision, model, classes } = evaluation;
  const confusion = new Confusion(classes);
  let loss = 0;
  let pixels = 0;
  for (const { images, labels, shape } of coveringTiles(evaluation.scenes, evaluation)) {
    const results = await runtime.step(() =>
      noGrad(() => {
        const logits = inPrecision(precision, () => model.forward(runtime.tensor(images, shape)));
        const scores = logits.reshape([-1, classes.length]);
        const options = { ignoreIndex: ignored, reduction: "sum" } as const;
        return {
          predictions: argmax(scores, -1),
          loss: crossEntropy(scores, runtime.tensor(labels), options),
        };
      }),
    );
    confusion.add(labels, await results.predictions.toArray());
    loss += await results.loss.item();
    pixels += labels.reduce((sum, label) => sum + (label === ignored ? 0 : 1), 0);
    results.predictions.dispose();
    results.loss.dispose();
  }
  return { ...confusion.scores(), loss: loss / pixels, confusion };
}
