import { openRuntime, print, say, UsageError } from "@halfstep/trainer/cli";
import { sampleOf } from "./examples.js";
import { describeBaselines, describeClose, nats, percent } from "./figures.js";
import { LabelMetrics } from "./label-metrics.js";
import type { EvaluateCommand } from "./options.js";
import { baselinesOf } from "./prepare.js";
import { readTask, type TaskData } from "./tasks.js";
import { openTrained, refereeOf, useModel } from "./use-model.js";

/** Labels whose confusion matrix is printed; JSON has any. */
const mostShown = 12;

/** Tests a trained model on data that it was not trained on. */
export async function evaluateCommand(options: EvaluateCommand): Promise<number> {
  const saved = await openTrained(options.model);
  const { purpose } = saved;
  if (saved.isForeign && options.data === undefined)
    throw new UsageError(
      `${options.model} is a model from elsewhere: name what to test it on by --data`,
    );
  const { encoding, textColumn, labelColumn, header, tokenColumn, tagColumn } = options;
  const columns = { encoding, textColumn, labelColumn, header, tokenColumn, tagColumn };
  const data = await readTask({ ...purpose, ...columns, data: options.data });
  const { train, test } = data.splits;
  // Files of one's own are tested whole.
  const tested = options.data === undefined ? test : [...train, ...test];
  const splits = { train: [], test: sampleOf<unknown>(tested, options.limit) };
  const { runtime, described, close } = await openRuntime({ ...options, onNote: say });
  const { half } = options;
  const prepared = useModel(runtime, saved, half, { ...data, splits } as TaskData);
  const metrics = data.kind === "text" ? undefined : new LabelMetrics(data.labels);
  const score = {
    ...(await prepared.evaluate({ metrics, ...(half && { referee: refereeOf(runtime, saved) }) })),
    ...metrics?.figures(),
  };
  close();
  const baselines =
    options.data === undefined ? baselinesOf(data, saved.tokenizer, purpose.maxLength) : {};
  const result = {
    ...{ task: purpose.task, model: saved.directory, precision: half ? "half" : "float32" },
    ...{ device: described, examples: splits.test.length, ...score, ...baselines },
    ...(metrics && {
      confusion: { labels: metrics.labels, counts: metrics.confusion.map((row) => [...row]) },
    }),
  };
  print(
    options.json
      ? JSON.stringify(result, undefined, 2)
      : [
          `accuracy ${percent(score.accuracy)} · loss ${nats(score.loss)} · ${splits.test.length} examples · ${result.precision}`,
          ...(metrics ? [describeBaselines(metrics.figures())] : []),
          ...(metrics && metrics.labels.length <= mostShown ? metrics.table() : []),
          ...(score.close === undefined ? [] : [describeClose(score.close, splits.test.length)]),
          ...(Object.keys(baselines).length > 0 ? [describeBaselines(baselines)] : []),
        ].join("\n"),
  );
  return 0;
}
