import { castTo, gt, type Tensor, where } from "@halfstep/tensor";
import { labelSetLoss } from "@halfstep/trainer";
import { TextScorer } from "./classifier.js";
import type { Scores } from "./learner.js";
import { lossOptions } from "./learner-loss.js";
import type { Encoded } from "./tokenizer.js";

/** A text as a model takes it, and its labels. */
export interface EncodedLabelSet extends Encoded {
  /** For each label 1 if the text has it, else 0. */
  readonly flags: readonly number[];
}

/** BERT that tells for each label whether a text has it: its score is above 0, its probability above a half. */
export class LabelSetClassifier extends TextScorer<EncodedLabelSet> {
  override lossOf({ values }: Scores, batch: readonly EncodedLabelSet[]): Tensor {
    const flags = Float32Array.from(batch.flatMap((example) => example.flags));
    const targets = this.runtime.tensor(flags, values.shape);
    return labelSetLoss(values, targets, lossOptions(this, this.options));
  }

  override decide({ values }: Scores): Tensor {
    return gt(values, 0);
  }

  /** The scores with each label moved by the margin towards the other answer. */
  challenge({ values }: Scores, best: Tensor, margin: number): Scores {
    const exact = castTo(values, "float32");
    return { values: where(best, exact.sub(margin), exact.add(margin)) };
  }

  override labelsOf(decided: Uint32Array): readonly (readonly number[])[] {
    const { classes } = this.options;
    return Array.from({ length: decided.length / classes }, (_, i) => [
      ...decided.subarray(i * classes, (i + 1) * classes),
    ]);
  }

  override wanted({ flags }: EncodedLabelSet): readonly number[] {
    return flags;
  }
}
