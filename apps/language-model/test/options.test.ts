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
  it("has nanoGPT's flags, with defaults", () => {
    expect(parseOptions(["train"])).toMatchObject({
      command: "train",
      arch: "gpt",
      tokenizer: "char",
      layers: 4,
      heads: 4,
      width: 128,
      context: 64,
      dropout: 0,
      bias: true,
      precision: "float16",
      accumulate: 1,
      clip: 1,
    });
    const flags = "train --layers 2 --no-bias --tokenizer bpe --text a.txt --precision O2";
    expect(parseOptions(flags.split(" "))).toMatchObject({
      layers: 2,
      bias: false,
      tokenizer: "bpe",
      text: "a.txt",
      precision: "O2",
    });
  });

  it("takes a folder to export to", () => {
    expect(parseOptions(["export", "gpt2", "--model", "runs/a"])).toEqual({
      command: "export",
      adapters: false,
      directory: "gpt2",
      model: "runs/a",
    });
  });

  it.each([
    [["train", "--layers", "0"], /--layers.*whole number from 1 on/],
    [["train", "--dropout", "2"], /--dropout.*from 0 to 1/],
    [["train", "--heads", "3"], /^--width 128 is no multiple of --heads 3$/],
    [["train", "--arch", "lstm", "--pretrained", "gpt2"], /leave it out with --arch lstm$/],
    [["train", "--beta2", "1"], /^--beta2 is 1: it must be less$/],
    [["train", "--tokenizer", "word"], /--tokenizer.*none of char, bpe/],
    [["train", "--precision", "float7"], /--precision/],
    [["train", "--static-loss-scale", "8", "--init-scale", "8"], /cannot be used with/],
    [["predict", "--temperature", "-1"], /--temperature.*from 0 on/],
    [["predict", "--layers", "2"], /unknown option '--layers'/],
    [["train", "more"], /too many arguments/],
    [["write"], /unknown command 'write'/],
  ])("refuses %j", (args, message) => {
    expect(refusal(...args)).toMatch(message);
  });

  it("takes a model of others by --pretrained, too", () => {
    for (const command of ["evaluate", "predict"])
      expect(parseOptions([command, "--pretrained", "gpt2"])).toMatchObject({ model: "gpt2" });
  });
});
