import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Generator, Linear, ReLU, Sequential } from "@halfstep/nn";
import { writeSafetensors } from "@halfstep/safetensors";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { run } from "../src/cli/run.js";
import { toOnnx } from "../src/index.js";
import { runtime } from "./cases.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-audit-"));
afterAll(() => rmSync(folder, { recursive: true }));
const at = (name: string): string => join(folder, name);
const model = at("model.onnx");

/** A file of inputs that are all the same number. */
const filled = (value: number): string => {
  const path = at(`${value}.safetensors`);
  const data = new Float32Array(2 * 784).fill(value);
  writeFileSync(path, writeSafetensors({ input: { dtype: "F32", shape: [2, 784], data } }));
  return path;
};

const audit = async (...args: readonly string[]) => {
  const notes: string[] = [];
  return { ...(await run(args, (line) => notes.push(line))), notes };
};

beforeAll(async () => {
  const generator = new Generator(1);
  const layers = [
    new Linear(runtime, 784, 64, { generator }),
    new ReLU(),
    new Linear(runtime, 64, 10, { generator }),
  ];
  writeFileSync(model, await toOnnx(new Sequential(...layers), [runtime.zeros([1, 784])]));
});

describe("halfstep-audit", () => {
  test("says that nothing has to stay float32", async () => {
    const { output, exitCode } = await audit("--cpu", model, filled(1));
    expect([exitCode, output]).toEqual([
      0,
      expect.stringMatching(
        /^output errs by 0\.0\d+ % of its largest number in float16\nnothing has to stay float32\n$/,
      ),
    ]);
  });

  test("lists operators that overflow, and what they do to the result", async () => {
    const { output } = await audit("--cpu", model, filled(60_000));
    const lines = output.trimEnd().split("\n");
    expect(lines.slice(0, 3)).toEqual([
      expect.stringMatching(
        /^output loses finite numbers in float16, and errs by 0\.0\d+ % of its largest number with 4 of 7 operators in float32$/,
      ),
      "these have to stay float32:",
      expect.stringMatching(
        /^ {2}MatMul {2}0\/MatMul: overflow: \d+ results are lost, up to [\d.e+]+; float16 ends at 65504$/,
      ),
    ]);
    expect(lines).toHaveLength(6);
    const other = await audit("--cpu", "--dtype", "bfloat16", model, filled(60_000));
    expect(other.output).toMatch(/in bfloat16\nnothing has to stay float32\n/);
  });

  test("lists operators that underflow, as JSON too, and on the GPU", async () => {
    const { output } = await audit("--cpu", model, filled(1e-9));
    // The biases are what the results are, so that nothing is wrong with these.
    expect(output).toMatch(/nothing has to stay float32\n1 of 7 operators lose numbers, without/);
    expect(output).toMatch(
      /MatMul {2}0\/MatMul: underflow: all results vanish, the largest is \d\.\d+e-\d+; float16 begins at 5\.96e-8/,
    );
    const found = await audit("--json", model, filled(60_000));
    expect([found.error, found.notes]).toEqual(["", []]);
    const { keep, dtype, errors } = JSON.parse(found.output);
    expect([dtype, keep]).toEqual(["float16", ["0/MatMul", "0/Add", "1/Relu", "2/MatMul"]]);
    expect(errors.output.kept).toBeLessThan(0.01);
  });

  test("takes token ids from integers of 64 bits", async () => {
    const golden = (name: string): string =>
      fileURLToPath(new URL(`golden/${name}`, import.meta.url));
    const { inputs } = JSON.parse(readFileSync(golden("graphs.json"), "utf8")).gpt2;
    const { shape, values } = inputs.input_ids;
    const path = at("ids.safetensors");
    const data = BigInt64Array.from(values, BigInt);
    writeFileSync(path, writeSafetensors({ input_ids: { dtype: "I64", shape, data } }));
    const { output, exitCode } = await audit("--cpu", golden("gpt2-17.onnx"), path);
    expect([exitCode, output]).toEqual([0, expect.stringContaining("nothing has to stay float32")]);
  });

  test("refuses in a line what it cannot use", async () => {
    const text = at("text.onnx");
    writeFileSync(text, "no model");
    const empty = at("empty.safetensors");
    writeFileSync(empty, writeSafetensors({}));
    const cases: readonly (readonly [string[], string])[] = [
      [[], "name a model and its inputs"],
      [[model], 'name a file of inputs, too, with "input" [batch, 784]'],
      [[model, filled(1), "more"], "name a model and its inputs"],
      [[at("none.onnx"), filled(1)], "none.onnx: there is no such file"],
      [[text, filled(1)], `${text}: `],
      [[model, text], `${text}: `],
      [[model, empty], `${empty}: lacks the input "input" [batch, 784]`],
      [["--dtype", "int8", model], "--dtype int8 is none of float16, bfloat16"],
      [["--tolerance", "2", model], "--tolerance 2 must be a number between 0 and 1"],
      [["--fast"], "Unknown option '--fast'"],
    ];
    for (const [args, message] of cases) {
      const { error, exitCode } = await audit("--cpu", ...args);
      expect([exitCode, error]).toEqual([2, expect.stringContaining(`halfstep-audit: `)]);
      expect(error).toContain(message);
      expect(error.trimEnd()).not.toContain("\n");
    }
    expect((await audit("--help")).output).toContain("Exit codes:");
  });
});
