import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { type ClassFlags, classFlags, classWeightsOf } from "./class-flags.js";
import { command } from "./command.js";
import { UsageError } from "./program.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-class-flags-"));
afterAll(() => rmSync(folder, { recursive: true }));

const labels = ["ham", "spam, or not"];
const weightsOf = (classWeights?: string): Promise<Float32Array | undefined> =>
  classWeightsOf({ classWeights }, { labels, counts: [3, 1] });
const inFile = (text: string): Promise<Float32Array | undefined> => {
  const path = join(folder, "weights.csv");
  writeFileSync(path, text);
  return weightsOf(path);
};

it("reads the flags", () => {
  const parse = (...args: readonly string[]): ClassFlags =>
    classFlags(command("x", "Trains.")).parse(args, { from: "user" }).opts<ClassFlags>();
  expect(parse()).toEqual({ labelSmoothing: 0 });
  expect(parse("--class-weights", "balanced", "--label-smoothing", "0.1")).toEqual({
    ...{ classWeights: "balanced", labelSmoothing: 0.1 },
  });
});

it("gives weights that are balanced, or those of a file", async () => {
  expect(await weightsOf()).toBeUndefined();
  expect(await weightsOf("balanced")).toEqual(Float32Array.of(4 / 6, 2));
  const wanted = Float32Array.of(0.5, 2);
  expect(await inFile("spam, or not,2\nham,0.5\n")).toEqual(wanted);
  expect(await inFile("class\tweight\r\nham\t0.5\r\n\r\nspam, or not\t2")).toEqual(wanted);
});

it.each([
  ["ham,1\n", /has no line for the class "spam, or not"/],
  ["ham,1\nham,1\n", /line 2 has ham again/],
  ["ham,1\neggs,1\n", /line 2 has the class "eggs", which is none of ham, spam, or not/],
  ["ham,-1\n", /line 1 is no name,weight/],
  ["ham\n", /has no line for the class "ham"/],
  ["ham,1\nspam, or not,many\n", /line 2 is no name,weight/],
])("refuses %j", async (text, message) => {
  await expect(inFile(text)).rejects.toThrow(message);
  await expect(inFile(text)).rejects.toBeInstanceOf(UsageError);
});

it("refuses a file that is not there", async () => {
  await expect(weightsOf(join(folder, "none"))).rejects.toThrow(/cannot be read \(ENOENT\)/);
});
