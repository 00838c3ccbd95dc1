import { exitCodeOf } from "@halfstep/trainer/cli";
import { describe, expect, it } from "vitest";
import { parseOptions } from "../src/options.js";

const parse = (line: string) => parseOptions(line.split(" "));

/** The exit code and the message for a command line that is wrong. */
const failure = (line: string): string => {
  try {
    parse(line);
    return "none";
  } catch (error) {
    return `${exitCodeOf(error)} ${(error as Error).message}`;
  }
};

describe("train", () => {
  it("has defaults of its own", () => {
    expect(parse("train")).toEqual({
      ...{ command: "train", data: "earth", precision: "float32" },
      ...{ tile: 64, epochs: 30, batchSize: 8, optimizer: "adamw", schedule: "cosine", lr: 0.01 },
      ...{ weightDecay: 0.01, clip: 1, seed: 0, saveEvery: 200, out: "runs/segmentation" },
      ...{ labelSmoothing: 0, json: false, tensorboard: false },
      ...{ wandb: false, mlflow: false, otel: false },
    });
  });

  it("takes --amp for float16, and --precision for any", () => {
    expect(parse("train --amp")).toMatchObject({ precision: "float16" });
    expect(parse("train --precision bfloat16")).toMatchObject({ precision: "bfloat16" });
    expect(parse("train --static-loss-scale 128")).toMatchObject({ precision: "float16" });
    expect(failure("train --amp --precision O2")).toMatch(/^2 .*--amp.*--precision/);
  });

  it("refuses what makes no sense, and names the flag", () => {
    const wrong: Readonly<Record<string, RegExp>> = {
      "--tile 8": /^2 .*--tile.*whole number from 16/,
      "--width 1": /^2 .*--width.*whole number from 2/,
      "--scale 0": /^2 .*--scale.*above 0/,
      "--validation 100": /^2 .*--validation.*between 0 and 100/,
      "--optimizer sgd": /^2 .*--optimizer.*none of adamw, rmsprop/,
      "--schedule step": /^2 .*--schedule.*none of cosine, plateau/,
      "--weight-decay -1": /^2 .*--weight-decay.*from 0/,
      "--static-loss-scale 8 --init-scale 8": /^2 .*--static-loss-scale.*--init-scale/,
      "--pretrained unet.pth --bilinear": /^2 --width and --bilinear are of a new network/,
      extra: /^2 .*too many arguments/,
    };
    const failures = Object.entries(wrong).filter(([flags, expected]) => {
      const said = failure(`train ${flags}`);
      return !expected.test(said);
    });
    expect(failures).toEqual([]);
  });
});

describe("predict", () => {
  it("takes pictures and files for their masks, as the seed's command line does", () => {
    expect(parse("predict a.jpg b.png -o c.png d.png -s 0.5 -t 0.4 -v -m runs/x")).toEqual({
      ...{ command: "predict", pictures: ["a.jpg", "b.png"], output: ["c.png", "d.png"] },
      ...{ scale: 0.5, maskThreshold: 0.4, viz: true, model: "runs/x" },
      ...{ save: true, half: false, palette: false, json: false },
    });
    expect(parse("predict a.jpg --no-save")).toMatchObject({ save: false, maskThreshold: 0.5 });
    expect(failure("predict")).toMatch(/^2 .*missing required argument 'pictures'/);
    expect(failure("predict a.jpg -t 2")).toMatch(/^2 .*--mask-threshold.*from 0 to 1/);
  });
});

it("needs a command", () => {
  expect(failure("--data digits")).toMatch(/^2 /);
  expect(parse("evaluate --json -m there")).toMatchObject({ command: "evaluate", model: "there" });
});
