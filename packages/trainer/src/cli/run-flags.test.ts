import { describe, expect, it } from "vitest";
import { command } from "./command.js";
import { exitCodeOf, exitCodes } from "./program.js";
import { jobDefaults, type RunFlags, runFlags, trackerDefaults } from "./run-flags.js";
import {
  fraction,
  listOf,
  notNegative,
  oneOf,
  positiveNumber,
  precisionName,
  wholeNumber,
} from "./values.js";

const all = {
  ...{ precision: "float32", epochs: 2, maxSteps: undefined, batchSize: 8, lr: 0.1, seed: 0 },
  ...{ accumulate: 1, staticLossScale: undefined, initScale: 65536, saveEvery: 100 },
  ...{ resume: undefined, out: "runs/x", adapter: undefined, device: undefined },
  ...{ json: false, dumpPlan: false, tensorboard: false },
  ...trackerDefaults,
  ...jobDefaults,
} satisfies { readonly [Name in keyof RunFlags]: RunFlags[Name] | undefined };

const parse = (args: readonly string[]): RunFlags =>
  runFlags(command("x", "Trains."), all).parse(args, { from: "user" }).opts<RunFlags>();

/** What is wrong with a command line, by its message, or what it says. */
const outcome = (args: readonly string[]): unknown => {
  try {
    return parse(args);
  } catch (error) {
    return `${exitCodeOf(error)} ${(error as Error).message}`;
  }
};

describe("runFlags", () => {
  it("refuses an output without a name", () => {
    expect(outcome(["--out="])).toMatch(/^2 .*--out <dir>.* it must name a folder\.$/);
  });

  it("has the defaults, and nothing where there is none", () => {
    expect(parse([])).toEqual({
      ...{ precision: "float32", epochs: 2, batchSize: 8, lr: 0.1, seed: 0, accumulate: 1 },
      ...{ initScale: 65536, saveEvery: 100, out: "runs/x" },
      ...{ json: false, dumpPlan: false, tensorboard: false, distributed: false },
      ...{ exchange: "allReduce", wire: "auto", innerSteps: 20, deadline: 600 },
      ...{ wandb: false, mlflow: false, otel: false },
    });
  });

  it("reads every flag", () => {
    const line =
      "--precision O2 --epochs 3 --max-steps 40 --batch-size 16 --lr 2e-3 --seed 7 --accumulate 4 --static-loss-scale 128 --save-every 5 --resume auto --out there --adapter 1 --device cpu --json --dump-plan --tensorboard --wandb --mlflow --otel --distributed --exchange diloco --wire float16 --inner-steps 5 --power-sgd 4 --deadline 30";
    expect(parse(line.split(" "))).toEqual({
      ...{ precision: "O2", epochs: 3, maxSteps: 40, batchSize: 16, lr: 2e-3, seed: 7 },
      ...{ accumulate: 4, staticLossScale: 128, initScale: 65536, saveEvery: 5, resume: "auto" },
      ...{ out: "there", adapter: "1", device: "cpu", json: true, dumpPlan: true },
      ...{
        tensorboard: true,
        ...{ wandb: true, mlflow: true, otel: true },
        distributed: true,
        exchange: "diloco",
        wire: "float16",
        innerSteps: 5,
        powerSgd: 4,
        deadline: 30,
      },
    });
  });

  it("refuses what makes no sense, and names the flag", () => {
    const wrong: Readonly<Record<string, RegExp>> = {
      "--precision half": /^2 .*--precision.*there is no recipe "half"/,
      "--epochs 0": /^2 .*--epochs.*whole number from 1/,
      "--max-steps x": /^2 .*--max-steps.*whole number from 1/,
      "--batch-size 1.5": /^2 .*--batch-size.*whole number from 1/,
      "--lr 0": /^2 .*--lr.*above 0/,
      "--seed -1": /^2 .*--seed.*whole number from 0/,
      "--accumulate 0": /^2 .*--accumulate.*whole number from 1/,
      "--init-scale Infinity": /^2 .*--init-scale/,
      "--static-loss-scale 2 --init-scale 2": /^2 .*--static-loss-scale.*--init-scale/,
      "--device tpu": /^2 .*--device.*gpu, cpu/,
      "--epoch 3": /^2 .*unknown option '--epoch'/,
      more: /^2 .*too many arguments/,
    };
    const failures = Object.entries(wrong).filter(([line, expected]) => {
      const said = outcome(line.split(" "));
      return typeof said !== "string" || !expected.test(said);
    });
    expect(failures).toEqual([]);
  });

  it("adds only the flags that are named, with details of the program's own", () => {
    const small = runFlags(
      command("x", "Trains."),
      { epochs: 1, batchSize: 4, staticLossScale: undefined },
      { batchSize: { description: "pages in a batch", parse: wholeNumber(2) } },
    );
    expect(small.options.map(({ long }) => long)).toEqual([
      "--epochs",
      "--batch-size",
      "--static-loss-scale",
    ]);
    expect(small.helpInformation()).toContain("pages in a batch (default: 4)");
    expect(() => small.parse(["--batch-size", "1"], { from: "user" })).toThrow(/from 2/);
    small.parse(["--static-loss-scale", "8"], { from: "user" });
    expect(small.opts()).toMatchObject({ staticLossScale: 8 });
  });

  it("takes other spellings of the program's own", () => {
    const flags = runFlags(
      command("x", "Trains."),
      { batchSize: 4, lr: undefined },
      { batchSize: { also: "-b" }, lr: { also: "--learning-rate" } },
    );
    const read = (line: string): unknown => flags.parse(line.split(" "), { from: "user" }).opts();
    expect(read("-b 8 --learning-rate 0.5")).toEqual({ batchSize: 8, lr: 0.5 });
    expect(read("--batch-size 16 --lr 0.25")).toEqual({ batchSize: 16, lr: 0.25 });
    expect(flags.helpInformation()).toMatch(/-b, --batch-size <n> .*\n +--learning-rate, --lr/);
    expect(() => read("-b 0")).toThrow(/-b, --batch-size.*from 1/);
  });

  it("ends the help of commands and subcommands with the exit codes", () => {
    let shown = "";
    const main = command("x", "Trains and predicts.").configureOutput({
      writeOut(text) {
        shown += text;
      },
    });
    runFlags(main.command("train <dir>").description("Trains."), { epochs: 1 });
    const codes = [["--help"], ["train", "--help"]].map((args) => {
      try {
        main.parse(args, { from: "user" });
        return undefined;
      } catch (error) {
        return exitCodeOf(error);
      }
    });
    expect(codes).toEqual([0, 0]);
    expect(shown.split(exitCodes)).toHaveLength(3);
    expect(exitCodes).toMatch(/ 0 .* 1 .* 2 .* 3 .* 4 .* 129\/130\/143 .* 141 /);
  });
});

describe("parsers of values", () => {
  it("take what they name and nothing else", () => {
    const parsers = {
      whole: wholeNumber(1),
      positive: positiveNumber,
      notNegative,
      fraction,
      one: oneOf(["a", "b"]),
      list: listOf(["a", "b"], "letter"),
      precision: precisionName,
    };
    const attempt = (name: keyof typeof parsers, text: string): unknown => {
      try {
        return parsers[name](text);
      } catch (error) {
        return (error as Error).message;
      }
    };
    const cases: readonly (readonly [keyof typeof parsers, string, unknown])[] = [
      ["whole", "12", 12],
      ["whole", "", "it must be a whole number from 1 on."],
      ["whole", "1e99", "it must be a whole number from 1 on."],
      ["positive", "1e-3", 1e-3],
      ["positive", "Infinity", "it must be a number above 0."],
      ["positive", "NaN", "it must be a number above 0."],
      ["notNegative", "0", 0],
      ["notNegative", "-1", "it must be a number from 0 on."],
      ["notNegative", "", "it must be a number from 0 on."],
      ["fraction", "0", 0],
      ["fraction", "1", 1],
      ["fraction", "1.1", "it must be a number from 0 to 1."],
      ["fraction", " ", "it must be a number from 0 to 1."],
      ["one", "b", "b"],
      ["one", "c", '"c" is none of a, b.'],
      ["list", "b, a", ["b", "a"]],
      ["list", "a,a", "each letter may be named once."],
      ["list", "a,c", '"c" is none of a, b.'],
      ["precision", "params=float32,compute=bfloat16,output=float32", expect.stringMatching(/=/)],
      ["precision", "O4", expect.stringMatching(/there is no recipe "O4".*O0 to O3/)],
    ];
    expect(cases.map(([name, text]) => attempt(name, text))).toEqual(
      cases.map(([, , expected]) => expected),
    );
  });
});
