import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bfloat16, float16 } from "@halfstep/formats";
import { Linear, loadTorchStateDict, type StateDict, torchStateDict } from "@halfstep/nn";
import { readSafetensors, SafetensorsError, writeSafetensors } from "@halfstep/safetensors";
import { cpuRuntime, Generator } from "@halfstep/tensor";
import { afterAll, describe, expect, it } from "vitest";
import { auditRange } from "./audit-range.js";
import { readWeights } from "./read-weights.js";
import { safetensorsOf, stateDictOf } from "./state-dict.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-weights-"));
afterAll(() => rmSync(folder, { recursive: true }));

const linear = (seed: number): Linear =>
  new Linear(cpuRuntime(), 3, 2, { generator: new Generator(seed) });

describe("stateDictOf", () => {
  it("decodes every dtype that weights come in", () => {
    const state = stateDictOf({
      half: { dtype: "F16", shape: [2], data: Uint16Array.of(float16.encode(1.5), 1) },
      brain: { dtype: "BF16", shape: [1], data: Uint16Array.of(bfloat16.encode(-3)) },
      tiny: { dtype: "F8_E4M3", shape: [2], data: Uint8Array.of(0x38, 0xb8) },
      double: { dtype: "F64", shape: [], data: Float64Array.of(0.1) },
      positions: { dtype: "I64", shape: [1, 2], data: BigInt64Array.of(511n, -1n) },
      mask: { dtype: "BOOL", shape: [2], data: Uint8Array.of(1, 0) },
      bytes: { dtype: "U8", shape: [1], data: Uint8Array.of(255) },
    });
    const plain = Object.fromEntries(
      Object.entries(state).map(([name, { dtype, shape, data }]) => [
        name,
        `${dtype} [${shape}] ${data.constructor.name} ${[...data]}`,
      ]),
    );
    expect(plain).toEqual({
      half: "float16 [2] Float32Array 1.5,5.960464477539063e-8",
      brain: "bfloat16 [1] Float32Array -3",
      tiny: "float32 [2] Float32Array 1,-1",
      double: "float32 [] Float64Array 0.1",
      positions: "int32 [1,2] Int32Array 511,-1",
      mask: "uint32 [2] Uint32Array 1,0",
      bytes: "int32 [1] Int32Array 255",
    });
  });

  it("names what no model can take", () => {
    expect(() =>
      stateDictOf({ ids: { dtype: "I64", shape: [1], data: BigInt64Array.of(2n ** 31n) } }),
    ).toThrow("ids has the integer 2147483648, which 32 bits do not hold");
    const wide =
      (...values: readonly number[]) =>
      () =>
        stateDictOf({
          w: { dtype: "F64", shape: [values.length], data: Float64Array.from(values) },
        });
    expect(wide(1, -1e300)).toThrow("w has the number -1e+300, which float32 does not hold");
    expect(wide(3.4e38, Number.NEGATIVE_INFINITY, Number.NaN, 1e-300)).not.toThrow();
    expect(() =>
      stateDictOf({ z: { dtype: "C64", shape: [1], data: Float32Array.of(1, 0) } }),
    ).toThrow("z has the dtype C64");
  });

  it("is undone by safetensorsOf, through a file and under torch's names, in every storage", async () => {
    for (const dtype of ["float32", "float16", "bfloat16"] as const) {
      const model = linear(1).store(dtype);
      const file = writeSafetensors(safetensorsOf(await torchStateDict(model)));
      const { tensors } = readSafetensors(file);
      expect(tensors.weight?.dtype).toBe(
        { float32: "F32", float16: "F16", bfloat16: "BF16" }[dtype],
      );
      const other = linear(2).store(dtype);
      loadTorchStateDict(other, stateDictOf(tensors));
      expect(await other.stateDict()).toEqual(await model.stateDict());
    }
    const odd = { x: { shape: [1], dtype: "int32", data: Float32Array.of(1) } } as const;
    // @ts-expect-error elements of another type than the dtype says
    expect(() => safetensorsOf(odd)).toThrow(
      "x has the dtype int32 and its data is a Float32Array",
    );
  });
});

describe("readWeights", () => {
  const write = (name: string, names: readonly string[]): void =>
    writeFileSync(
      join(folder, name),
      writeSafetensors(
        names.map(
          (each) => [each, { dtype: "F16", shape: [1], data: Uint16Array.of(0x3c00) }] as const,
        ),
      ),
    );

  it("reads a file, and the folder that it is in", async () => {
    write("model.safetensors", ["a", "__proto__"]);
    const state = await readWeights(join(folder, "model.safetensors"));
    expect(Object.keys(state)).toEqual(["__proto__", "a"]);
    expect(await readWeights(folder)).toEqual(state);
  });

  it("reads a checkpoint in several files, by its index", async () => {
    const sharded = join(folder, "sharded");
    mkdirSync(sharded);
    write("sharded/model-00001-of-00002.safetensors", ["a"]);
    write("sharded/model-00002-of-00002.safetensors", ["b", "c"]);
    const index = (weight_map: unknown) =>
      writeFileSync(join(sharded, "model.safetensors.index.json"), JSON.stringify({ weight_map }));
    const [first, second] = [1, 2].map((part) => `model-0000${part}-of-00002.safetensors`);
    index({ a: first, b: second, c: second });
    expect(Object.keys(await readWeights(sharded)).sort()).toEqual(["a", "b", "c"]);
    for (const wrong of [undefined, { a: "../model.safetensors" }, { a: 3 }]) {
      index(wrong);
      await expect(readWeights(sharded)).rejects.toThrow(SafetensorsError);
    }
    const checkpoint = new URL("../../../torch-files/test/golden/training.th", import.meta.url);
    expect(await readWeights(fileURLToPath(checkpoint))).toMatchObject({
      "fc.weight": { shape: [2, 3], dtype: "float32" },
      "fc.bias": { shape: [2], dtype: "float32" },
    });
    await expect(readWeights(join(folder, "none"))).rejects.toMatchObject({ code: "ENOENT" });
  });
});

describe("auditRange", () => {
  const state: StateDict = {
    good: { shape: [3], dtype: "float32", data: Float32Array.of(1, -65504, 6e-5) },
    large: { shape: [4], dtype: "float32", data: Float32Array.of(65519, 65520, -1e6, 1) },
    small: {
      shape: [200],
      dtype: "bfloat16",
      data: new Float32Array(200).fill(0.5).fill(1e-9, 0, 50),
    },
    slightly: {
      shape: [200],
      dtype: "float32",
      data: new Float32Array(200).fill(0.5).fill(2e-8, 7, 8),
    },
    broken: { shape: [2], dtype: "float32", data: Float32Array.of(Number.NaN, 2 ** 60) },
    ids: { shape: [1], dtype: "int32", data: Int32Array.of(100_000) },
  };

  it("says what float16 would do to each tensor, the worst first, and what to do", () => {
    const audit = auditRange(state, "float16");
    expect(audit).toMatchObject({
      ...{ format: "float16", tensors: 5, elements: 409, isSafe: false },
      dtypes: { float32: 4, bfloat16: 1, int32: 1 },
    });
    expect(
      audit.problems.map(({ name, nonFinite, overflow, underflow, max }) => ({
        ...{ name, nonFinite, overflow, underflow, max: Math.round(max) },
      })),
    ).toEqual([
      { name: "broken", nonFinite: 1, overflow: 1, underflow: 0, max: 2 ** 60 },
      { name: "large", nonFinite: 0, overflow: 2, underflow: 0, max: 1e6 },
      { name: "small", nonFinite: 0, overflow: 0, underflow: 50, max: 1 },
      { name: "slightly", nonFinite: 0, overflow: 0, underflow: 1, max: 1 },
    ]);
    expect(audit.advice).toEqual([
      expect.stringMatching(
        /^broken: 1 of 2 elements are NaN or infinite: the checkpoint is damaged/,
      ),
      "large: 2 of 4 elements are beyond float16's largest number, 65504 (up to 1000000): keep its module in float32 (`modules` of a recipe), or use bfloat16 or float32",
      expect.stringMatching(
        /^small: 50 of 200 .* become 0 in float16 \(down to 1e-9; .*5\.96e-8\): keep its module/,
      ),
      expect.stringMatching(/^slightly: 1 of 200 .*: float32 parameters or masters .* keep them/),
    ]);
  });

  it("finds nothing wrong with what bfloat16 holds", () => {
    const { broken: _, ...fine } = state;
    expect(auditRange(fine, "bfloat16")).toMatchObject({ problems: [], advice: [], isSafe: true });
    expect(auditRange({}, "float16")).toMatchObject({ tensors: 0, elements: 0, isSafe: true });
  });
});
