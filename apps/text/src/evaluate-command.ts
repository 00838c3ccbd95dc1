import { DataError } from "@halfstep/data";
import { ConfusionMatrix } from "@halfstep/trainer";
import { openRuntime, print, say, UsageError } from "@halfstep/trainer/cli";
import type { EvaluateCommand } from "./commands.js";
import { describeEmpty } from "./describe-data.js";
import { sampleOf } from "./examples.js";
import { describeBaselines, describeClose, nats, percent } from "./figures.js";
import { type TestMetrics, tableOf } from "./label-metrics.js";
import type { OwnData } from "./own-file.js";
import { baselinesOf } from "./prepare.js";
import { readTask, type TaskData } from "./tasks.js";
import { openTrained, refereeOf, useModel } from "./use-model.js";

/** Labels whose confusion matrix is printed; JSON has any. */
const mostShown = 12;

/** Tests a trained model on data that it was not trained on. */
export async function evaluateCommand(options: EvaluateCommand): Promise<number> {
  const saved = await openTrained(options.model, options);
  const { purpose } = saved;
  if (options.data === undefined && (saved.isForeign || purpose.ownData))
    throw new UsageError(
      `${options.model} ${saved.isForeign ? "is a model from elsewhere" : "was trained on data of your own"}: name what to test it on by --data`,
    );
  const data = await readTask({ ...purpose, ...columnsOf(options), data: options.data });
  for (const line of describeEmpty(data)) say(line);
  const { train, test } = data.splits;
  // Files of one's own are tested whole.
  const tested = options.data === undefined ? test : [...train, ...test];
  if (tested.length === 0)
    throw new DataError(
      options.data ?? purpose.task,
      "has no examples: there is nothing to test on",
    );
  const splits = { train: [], test: sampleOf<unknown>(tested, options.limit) };
  const { runtime, described, close } = await openRuntime({ ...options, onNote: say });
  const { half } = options;
  const prepared = useModel(runtime, saved, half, { ...data, splits } as TaskData);
  const metrics = prepared.newMetrics();
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
    ...(metrics && countsOf(metrics)),
  };
  print(
    options.json
      ? JSON.stringify(result, undefined, 2)
      : [
          `accuracy ${percent(score.accuracy)} · loss ${nats(score.loss)} · ${splits.test.length} examples · ${result.precision}`,
          ...(metrics ? [describeBaselines(metrics.figures())] : []),
          ...(metrics && metrics.counts.labels.length <= mostShown ? tableOf(metrics.counts) : []),
          ...(score.close === undefined ? [] : [describeClose(score.close, splits.test.length)]),
          ...(Object.keys(baselines).length > 0 ? [describeBaselines(baselines)] : []),
        ].join("\n"),
  );
  return 0;
}

/** The flags that say how a file is read. */
function columnsOf(options: EvaluateCommand): Omit<OwnData, "data"> {
  const { encoding, header, textColumn, textPairColumn, labelColumn } = options;
  const { tokenColumn, tagColumn } = options;
  return {
    ...{ encoding, header, textColumn, textPairColumn, labelColumn },
    ...{ tokenColumn, tagColumn },
  };
}

/** What was counted, for JSON. */
const countsOf = ({ counts }: TestMetrics): Readonly<Record<string, unknown>> =>
  counts instanceof ConfusionMatrix
    ? { confusion: { labels: counts.labels, counts: counts.rows() } }
    : { labels: counts.classScores() };
