import { openRuntime, print, say } from "@halfstep/trainer/cli";
import { sampleOf } from "./examples.js";
import { describeBaselines, describeClose, nats, percent } from "./figures.js";
import type { EvaluateCommand } from "./options.js";
import { baselinesOf } from "./prepare.js";
import { readTask, type TaskData } from "./tasks.js";
import { openTrained, refereeOf, useModel } from "./use-model.js";

/** Tests a trained model on data that it was not trained on. */
export async function evaluateCommand(options: EvaluateCommand): Promise<number> {
  const saved = await openTrained(options.model);
  const { purpose } = saved;
  const { encoding, textColumn, labelColumn, header } = options;
  const columns = { encoding, textColumn, labelColumn, header };
  const data = await readTask({ ...purpose, ...columns, data: options.data });
  const { train, test } = data.splits;
  // Files of one's own are tested whole.
  const tested = options.data === undefined ? test : [...train, ...test];
  const splits = { train: [], test: sampleOf<unknown>(tested, options.limit) };
  const { runtime, described, close } = await openRuntime({ ...options, onNote: say });
  const { half } = options;
  const prepared = useModel(runtime, saved, half, { ...data, splits } as TaskData);
  const score = await prepared.evaluate(half ? { referee: refereeOf(runtime, saved) } : {});
  close();
  const baselines =
    options.data === undefined ? baselinesOf(data, saved.tokenizer, purpose.maxLength) : {};
  const result = {
    ...{ task: purpose.task, model: saved.directory, precision: half ? "half" : "float32" },
    ...{ device: described, examples: splits.test.length, ...score, ...baselines },
  };
  print(
    options.json
      ? JSON.stringify(result, undefined, 2)
      : [
          `accuracy ${percent(score.accuracy)} · loss ${nats(score.loss)} · ${splits.test.length} examples · ${result.precision}`,
          ...(score.close === undefined ? [] : [describeClose(score.close, splits.test.length)]),
          ...(Object.keys(baselines).length > 0 ? [describeBaselines(baselines)] : []),
        ].join("\n"),
  );
  return 0;
}
