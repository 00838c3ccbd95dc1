import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exitCodeOf } from "@halfstep/trainer/cli";
import { afterAll, describe, expect, it } from "vitest";
import { type PredictCommand, parseOptions } from "../src/options.js";
import { outputsOf } from "../src/outputs.js";

const scratch = mkdtempSync(join(tmpdir(), "halfstep-outputs-"));
afterAll(() => rmSync(scratch, { recursive: true }));

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

  const outputs = (line: string) => outputsOf(parse(`predict ${line}`) as PredictCommand);
  const refusal = (line: string): string => {
    try {
      return JSON.stringify(outputs(line));
    } catch (error) {
      return `${exitCodeOf(error)} ${(error as Error).message}`;
    }
  };

  it("writes beside the pictures, or where it is told to", () => {
    expect(outputs("a/b.jpg c.png --viz")).toEqual([
      { picture: "a/b.jpg", mask: "a/b_OUT.png", viz: "a/b_OUT_VIZ.png" },
      { picture: "c.png", mask: "c_OUT.png", viz: "c_OUT_VIZ.png" },
    ]);
    expect(outputs("a.jpg -o there/m.PNG")).toEqual([{ picture: "a.jpg", mask: "there/m.PNG" }]);
    expect(outputs("a.jpg b.png -n -v -o m.png o.png")).toEqual([
      { picture: "a.jpg", viz: "m_VIZ.png" },
      { picture: "b.png", viz: "o_VIZ.png" },
    ]);
  });

  it("never writes over a picture, nor a result over another", () => {
    const real = join(scratch, "real");
    mkdirSync(real);
    writeFileSync(join(real, "p.png"), "a picture");
    symlinkSync(real, join(scratch, "link"));
    const [here, linked] = [join(real, "p.png"), join(scratch, "link", "p.png")];
    const replaced = "would replace the picture";
    expect(refusal(`${here} -o ${here}`)).toBe(
      `2 the mask of ${here} ${replaced} ${here}: name another file by -o`,
    );
    expect(refusal(`${here} -o ${linked}`)).toContain(`${replaced} ${here}`);
    expect(refusal("a.png -o ./x/../a.png")).toContain(`${replaced} a.png`);
    expect(refusal("a.jpg a_OUT.png")).toContain(`the mask of a.jpg ${replaced} a_OUT.png`);
    expect(refusal("a.jpg m_VIZ.png -v -o m.png n.png")).toContain(
      `the --viz picture of a.jpg ${replaced} m_VIZ.png`,
    );
    expect(refusal("b.jpg b.png")).toBe(
      "2 the mask of b.jpg and the mask of b.png would both be b_OUT.png: name a file for each picture by -o",
    );
    expect(refusal("c.jpg d.jpg -o o.png o.png")).toContain("the mask of c.jpg and the mask of d");
    const news = [join(real, "new", "o.png"), join(scratch, "link", "new", "o.png")];
    expect(refusal(`c.jpg d.jpg -o ${news.join(" ")}`)).toContain("would both be");
    expect(refusal("c.jpg d.jpg -v -o o.png o_VIZ.png")).toContain(
      "the --viz picture of c.jpg and the mask of d.jpg would both be o_VIZ.png",
    );
  });

  it("writes PNG files, and refuses the names of others", () => {
    expect(refusal("a.png -o m.jpg")).toBe("2 m.jpg: cannot be written: let it end in .png");
    expect(refusal("a.png b.png -o m.png")).toMatch(/^2 --output names 1 files for 2 pictures/);
  });
});

it("needs a command", () => {
  expect(failure("--data digits")).toMatch(/^2 /);
  expect(parse("evaluate --json -m there")).toMatchObject({ command: "evaluate", model: "there" });
});
