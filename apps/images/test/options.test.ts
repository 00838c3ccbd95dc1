import { describe, expect, it } from "vitest";
import { parseOptions, type TrainCommand } from "../src/options.js";
import { type ImagesRun, scheduleOf, stepsOf } from "../src/train.js";

const training = (...args: string[]): TrainCommand => parseOptions(args) as TrainCommand;

describe("the command line of apex's ImageNet trainers", () => {
  it("has apex's defaults", () => {
    expect(training("some/folder")).toMatchObject({
      ...{ command: "train", directory: "some/folder", arch: "resnet18", epochs: 90 },
      ...{ batchSize: 256, lr: 0.1, momentum: 0.9, weightDecay: 1e-4, normDecay: true },
      ...{ warmUp: 5, milestones: [30, 60, 80], cropScale: 0.08, evaluate: false, workers: 4 },
    });
    expect(training("DIR")).not.toHaveProperty("fp16");
    expect(training("DIR", "--bf16")).not.toHaveProperty("bf16");
  });

  // As the documents that describe the script spell them.
  it.each<[string, Partial<TrainCommand>]>([
    ["DIR", {}],
    ["--static-loss-scale 128.0 DIR", { staticLossScale: 128 }],
    ["--fp16 --static-loss-scale 128.0 DIR", { fp16: true, staticLossScale: 128 }],
    ["--loss-scale 128.0 DIR", { lossScale: "128.0" }],
    ["--dynamic-loss-scale DIR", { dynamicLossScale: true }],
    [
      "-a resnet50 -b 224 -j 4 --opt-level O2 --loss-scale dynamic --keep-batchnorm-fp32 True DIR",
      {
        ...{ arch: "resnet50", batchSize: 224, workers: 4, optLevel: "O2" },
        ...{ lossScale: "dynamic", keepBatchnormFp32: "True" },
      },
    ],
    [
      "DIR --learning-rate 0.2 --wd 5e-5 -e --prof 20",
      { lr: 0.2, weightDecay: 5e-5, evaluate: true, prof: 20 },
    ],
    ["DIR --sync_bn", { syncBatchNorm: true }],
    // The command of apex's README, and what launchers add.
    [
      "DIR -a resnet50 --b 224 -p 10 --channels-last --local_rank 0 --world-size 2 --start-epoch 0",
      { arch: "resnet50", batchSize: 224 },
    ],
    ["DIR --start-epoch 3 --resume auto", { resume: "auto" }],
    ["DIR --bf16", { precision: "bfloat16" }],
    ["evaluate DIR --bf16", { precision: "bfloat16", evaluate: true }],
    ["train DIR --epochs 3 --milestones 1,2", { epochs: 3, milestones: [1, 2] }],
    ["evaluate DIR --resume auto", { evaluate: true, resume: "auto" }],
    [
      "DIR --deterministic --seed 7 --adapter llvmpipe",
      { deterministic: true, seed: 7, adapter: "llvmpipe" },
    ],
  ])("%s", (line, expected) => {
    expect(training(...line.split(" "))).toMatchObject({ directory: "DIR", ...expected });
  });

  it("without a folder it is a demonstration, which flags may change", () => {
    const { directory, ...shown } = training("--epochs", "1");
    expect(directory).toBeUndefined();
    expect(shown).toMatchObject({ arch: "resnet20", epochs: 1, batchSize: 64 });
    expect(training().limit).toBeGreaterThan(1000);
  });

  it("has commands for inference and for data", () => {
    expect(parseOptions(["predict", "a.png", "b.jpg", "--half"])).toMatchObject({
      ...{ command: "predict", files: ["a.png", "b.jpg"], half: true, model: "runs/images" },
    });
    expect(parseOptions(["export", "net.safetensors"])).toEqual({
      ...{ command: "export", file: "net.safetensors", model: "runs/images" },
    });
    expect(parseOptions(["export-folder", "out", "--train", "9"])).toEqual({
      ...{ command: "export-folder", to: "out", train: 9 },
    });
  });

  it.each([
    [
      "DIR --arch resnet19",
      "is none of resnet18, resnet20, resnet32, resnet34, resnet44, resnet50, resnet56",
    ],
    ["DIR --opt-level O4", "is none of O0, O1, O2, O3"],
    ["DIR --static-loss-scale -1", "must be a number above 0"],
    ["DIR --out=", "'--out <dir>' argument '' is invalid. it must name a folder"],
    ["DIR --bf16 --fp16", "--bf16 and --fp16 both choose a precision: give one of them"],
    ["DIR --opt-level O1 --bf16", "--bf16 and --opt-level both choose a precision"],
    ["DIR --precision float16 --bf16", "--bf16 and --precision both choose a precision"],
    ["DIR --batch-size 1", "must be a whole number from 2 on"],
    ["DIR --milestones 3,2", "epochs must rise"],
    ["DIR --start-epoch 3", "training begins at epoch 0, or goes on where --resume stopped"],
    ["DIR --frames 3", "unknown option '--frames'"],
    ["one two", "too many arguments"],
    ["predict", "missing required argument"],
  ])("%s is refused", (line, message) => {
    expect(() => parseOptions(line.split(" "))).toThrow(message);
  });
});

it("rates are apex's: for 256 images in a step, warmed up in five epochs, a tenth at 30, 60 and 80", () => {
  const run = {
    ...{ train: { count: 1000 }, batchSize: 64, accumulate: 2, epochs: 90, lr: 0.1 },
    ...{ warmUp: 5, milestones: [30, 60, 80] },
  } as unknown as ImagesRun;
  const perEpoch = 8; // 16 batches, two a step
  expect(stepsOf(run)).toBe(90 * perEpoch);
  const rate = scheduleOf(run);
  const base = 0.1 * (128 / 256);
  const places: readonly (readonly [epoch: number, step: number, lr: number])[] = [
    [0, 0, base / (5 * perEpoch)],
    [2, 3, (base * (1 + 3 + 2 * perEpoch)) / (5 * perEpoch)],
    ...([5, 29].map((epoch) => [epoch, 0, base]) as [number, number, number][]),
    ...([30, 59].map((epoch) => [epoch, 7, base / 10]) as [number, number, number][]),
    [60, 0, base / 100],
    [89, 7, base / 1000],
  ];
  const seen = places.map(([epoch, step]) => rate(epoch * perEpoch + step));
  expect(seen).toEqual(places.map(([, , lr]) => expect.closeTo(lr, 12)));
});
