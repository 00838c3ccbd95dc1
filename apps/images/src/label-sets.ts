import { gt, noGrad } from "@halfstep/tensor";
import { LabelSetCounts, labelSetLoss } from "@halfstep/trainer";
import {
  type LabelSetsTested,
  logitsOf,
  type Mistake,
  mostMistakes,
  type ScoreOptions,
} from "./evaluate.js";

/** Scores a network on images with any number of labels. A label is told where its probability is above a half. */
export async function scoreLabelSets(options: ScoreOptions): Promise<LabelSetsTested> {
  const { runtime, classes, signal } = options;
  const counts = new LabelSetCounts(classes);
  const mistakes: Mistake[] = [];
  let [loss, samples] = [0, 0];
  for await (const batch of options.batches) {
    const { flags = new Float32Array(), labels } = batch;
    const { told, mean } = await runtime.step(() =>
      noGrad(() => {
        const logits = logitsOf(options, batch);
        return {
          told: gt(logits, 0),
          mean: labelSetLoss(logits, runtime.tensor(flags, logits.shape)),
        };
      }),
    );
    const predicted = await told.toArray();
    loss += labels.length * (await mean.item());
    told.dispose();
    mean.dispose();
    for (let i = 0; i < labels.length; i++) {
      const rowOf = (values: ArrayLike<number>): number[] =>
        Array.from(classes, (_, label) => values[i * classes.length + label] as number);
      const [wanted, given] = [rowOf(flags), rowOf(predicted)];
      counts.add(wanted, given);
      if (mistakes.length < mostMistakes && wanted.some((has, label) => has !== given[label]))
        mistakes.push({
          image: samples + i,
          predictions: given.flatMap((has, label) => (has === 1 ? [label] : [])),
        });
    }
    samples += labels.length;
    if (signal?.aborted) break;
  }
  return { score: { ...counts.figures(), loss: loss / samples, samples }, mistakes, counts };
}
