import { describe, expect, it } from "vitest";
import { parseOptions } from "../src/options.js";

const refusal = (...args: readonly string[]): string => {
  try {
    parseOptions(args);
  } catch (error) {
    return (error as Error).message;
  }
  return "taken";
};

describe("the command line", () => {
  it("has run_classifier's flags", () => {
    const flags =
      "--do_train --do_eval --fp16 --loss_scale 128 --gradient_accumulation_steps 2 --warmup_proportion 0.2 --max_seq_length 96 --learning_rate 5e-5 --num_train_epochs 3 --train_batch_size 8";
    expect(parseOptions(["train", "--task", "spam", ...flags.split(" ")])).toMatchObject({
      ...{ command: "train", task: "spam", isTraining: true, isEvaluating: true },
      ...{ precision: "float16", staticLossScale: 128, accumulate: 2, warmup: 0.2 },
      ...{ maxLength: 96, lr: 5e-5, epochs: 3, batchSize: 8 },
    });
  });

  it("takes run_classifier's flags that have nothing to choose here", () => {
    const flags =
      "--local_rank -1 --cache_dir c --server_ip 1.2.3.4 --server_port 5 --eval_batch_size 8";
    expect(parseOptions(["train", "--task", "spam", ...flags.split(" ")])).toMatchObject({
      ...{ task: "spam", isTraining: true },
    });
  });

  it("has the names that other trainers give some of them, too", () => {
    const flags = "--accumulate 2 --lr 5e-5 --epochs 3 --batch-size 8 --tensorboard";
    expect(parseOptions(["train", "--task", "spam", ...flags.split(" ")])).toMatchObject({
      ...{ accumulate: 2, lr: 5e-5, epochs: 3, batchSize: 8, tensorboard: true },
    });
  });

  it("trains and tests unless one of the two is asked for", () => {
    const asked = (...flags: readonly string[]) => {
      const options = parseOptions(["train", "--task", "tags", ...flags]);
      return options.command === "train" ? [options.isTraining, options.isEvaluating] : [];
    };
    expect(asked()).toEqual([true, true]);
    expect(asked("--do_train")).toEqual([true, false]);
    expect(asked("--do_eval")).toEqual([false, true]);
    expect(asked("--do_train", "--do_eval")).toEqual([true, true]);
  });

  it("leaves to the task what is not given, and a loss scale of 0 to the scaler", () => {
    const options = parseOptions(["train", "--task", "mlm", "--fp16", "--loss_scale", "0"]);
    expect(options).toMatchObject({ out: "runs/text/mlm", accumulate: 1, warmup: 0.1, crf: true });
    expect(options).not.toHaveProperty("staticLossScale");
    expect([options].map((o) => o.command === "train" && [o.lr, o.epochs])).toEqual([
      [undefined, undefined],
    ]);
  });

  it("refuses what it cannot do, in one line", () => {
    const train = (...flags: readonly string[]) => refusal("train", "--task", "spam", ...flags);
    const cases: readonly (readonly [string, RegExp])[] = [
      [refusal("train"), /name one task: --task for ours/],
      [refusal("train", "--task", "ner"), /"ner" is none of spam, sentences, tags, mlm/],
      [train("--fp16", "--precision", "float32"), /--fp16 is --precision float16/],
      [train("--loss_scale", "100"), /it must be 0, or a power of 2/],
      [train("--fp16", "--loss_scale", "128", "--init-scale", "4"), /--loss_scale is fixed/],
      [train("--warmup_proportion", "2"), /a number from 0 to 1/],
      [train("--max_seq_length", "4"), /a whole number from 8 on/],
      [train("--fold", "5"), /it must be 0 to 4, or all/],
      [train("--focal", "0.5"), /it must be 0, or from 1 on/],
      [train("--focal", "2", "--label-smoothing", "0.1"), /give one of them/],
      [refusal("train", "--task", "tags", "--focal", "2"), /add --no-crf/],
      [refusal("train", "--task", "mlm", "--focal", "2"), /not for mlm/],
      [train("--adversarial", "-1"), /a number from 0 on/],
      [refusal("predict", "text"), /name one model: --model for one of train/],
      [refusal("evaluate", "--model", "x", "y"), /too many arguments/],
    ];
    expect(cases.filter(([message, pattern]) => !pattern.test(message))).toEqual([]);
  });

  it("takes texts behind the flags of predict", () => {
    expect(parseOptions(["predict", "--model", "x", "--half", "one text", "another"])).toEqual({
      ...{ command: "predict", model: "x", half: true, json: false },
      texts: ["one text", "another"],
    });
  });
});
