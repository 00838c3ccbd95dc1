import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bfloat16, float16 } from "@halfstep/formats";
import { readSafetensors, writeSafetensors } from "@halfstep/safetensors";
import { afterAll, beforeEach, describe, expect, test, vi } from "vitest";
import { golden, goldenPath } from "../test/golden.js";
import { run } from "./cli/run.js";
import { convertToSafetensors } from "./convert.js";
import { openWeights } from "./open-weights.js";

const root = mkdtempSync(join(tmpdir(), "halfstep-torch-files-"));
afterAll(() => rmSync(root, { recursive: true }));
let folder = root;
beforeEach(() => {
  folder = mkdtempSync(join(root, "test-"));
});

const convert = (...args: string[]) => run(args, () => {});
const bytesOf = ({ data }: { readonly data: ArrayBufferView }): string =>
  Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("hex");

describe("openWeights", () => {
  test("reads several files by their index, and by their folder", async () => {
    for (const path of ["sharded", "sharded/pytorch_model.bin.index.json"]) {
      await using weights = await openWeights(goldenPath(path));
      const tensors = Object.entries(await weights.readAll());
      expect(Object.fromEntries(tensors.map(([name, tensor]) => [name, bytesOf(tensor)]))).toEqual(
        Object.fromEntries(
          Object.entries(golden.sharded ?? {}).map(([name, { bytes }]) => [name, bytes]),
        ),
      );
    }
  });

  test("names a tensor that the index promises and no file has", async () => {
    const shard = "pytorch_model-00001-of-00002.bin";
    copyFileSync(goldenPath(`sharded/${shard}`), join(folder, shard));
    const index = join(folder, "pytorch_model.bin.index.json");
    writeFileSync(index, JSON.stringify({ weight_map: { "embed.weight": shard, lost: shard } }));
    await expect(openWeights(folder)).rejects.toThrow(
      `${index}: tensor "lost": is not in ${join(folder, shard)}`,
    );
  });

  test("goes by contents, not by names, and takes the only file of a folder", async () => {
    writeFileSync(
      join(folder, "weights.bin"),
      writeSafetensors({ a: { dtype: "U8", shape: [1], data: Uint8Array.of(7) } }),
    );
    await using weights = await openWeights(folder);
    expect(Object.keys(weights.tensors)).toEqual(["a"]);
    copyFileSync(goldenPath("gan.pt"), join(folder, "model.safetensors"));
    await expect(openWeights(folder)).rejects.toThrow("choose one by the option key");
    await using critic = await openWeights(folder, { key: "critic" });
    expect(critic.tensors).toMatchObject({ weight: { shape: [3] } });
  });

  test("names what a folder lacks, or has too much of", async () => {
    await expect(openWeights(folder)).rejects.toThrow(`${folder}: is a folder without weights`);
    for (const name of ["a.pt", "b.pt"]) writeFileSync(join(folder, name), "");
    await expect(openWeights(folder)).rejects.toThrow("name one of a.pt, b.pt");
    await expect(openWeights(join(folder, "a.pt"))).rejects.toThrow("a.pt: is empty");
    await expect(openWeights(join(folder, "c.pt"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("lets the reader of safetensors name what is wrong with a file of its own", async () => {
    const path = join(folder, "cut.safetensors");
    writeFileSync(path, new Uint8Array(5));
    await expect(openWeights(path)).rejects.toMatchObject({
      problem: "truncated",
      name: "SafetensorsError",
    });
    writeFileSync(path, "version https://git-lfs.github.com/spec/v1\n");
    await expect(openWeights(path)).rejects.toThrow("cut.safetensors: is a Git LFS pointer");
  });
});

describe("halfstep-convert", () => {
  test("writes the same elements", async () => {
    const to = join(folder, "model.safetensors");
    const { output, error, exitCode } = await convert(goldenPath("every-kind-legacy.pt"), to);
    expect([error, exitCode]).toEqual(["", 0]);
    expect(output).toMatch(
      /^\S+: 21 tensors \(.*8 F32.*\), 0\.\d+ MB, compared with \S+legacy\.pt\n$/,
    );
    const { tensors, metadata } = readSafetensors(readFileSync(to));
    expect({ ...metadata }).toEqual({ format: "pt" });
    for (const [name, { shape, bytes }] of Object.entries(golden["every-kind.pt"] ?? {}))
      expect([tensors[name]?.shape, bytesOf(tensors[name] as never)]).toEqual([shape, bytes]);
    expect(readdirSync(folder)).toEqual(["model.safetensors"]);
  });

  test("names what else has tensors, and refuses where that leaves a choice", async () => {
    const to = join(folder, "net.safetensors");
    const from = goldenPath("beside.pt");
    const { error, exitCode } = await convert(from, to);
    expect([error.split(": ").slice(2).join(": "), exitCode]).toEqual([
      'has tensors of its own, "epoch", and under "mynet": choose by the option key, which is "" for its own\n',
      2,
    ]);
    const { output } = await convert(from, to, "--key", "mynet");
    expect(output.split("\n").slice(1)).toEqual([
      'not written, and with tensors, too: "epoch", "optimizer", "history" (--key chooses one)',
      "",
    ]);
    const { output: json } = await convert(from, to, "--key", "", "--json");
    expect(JSON.parse(json)).toMatchObject({
      tensors: 1,
      skipped: ["mynet", "optimizer", "history"],
    });
  });

  test.each(["bf16", "toString", 16, null])("refuses the dtype %s", async (dtype) => {
    const to = join(folder, "unknown-dtype.safetensors");
    const options = { dtype: dtype as "bfloat16" };
    await expect(convertToSafetensors(goldenPath("signs.pt"), to, options)).rejects.toThrow(
      new TypeError(
        `convertToSafetensors: dtype is ${dtype}: pass any of float32, float16, bfloat16`,
      ),
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  test("writes views of conjugates with the signs that they have", async () => {
    const to = join(folder, "signs.safetensors");
    await convert(goldenPath("signs.pt"), to);
    const { tensors } = readSafetensors(readFileSync(to));
    for (const [name, { bytes }] of Object.entries(golden["signs.pt"] ?? {}))
      expect([name, bytesOf(tensors[name] as never)]).toEqual([name, bytes]);
  });

  test.each([
    ["float16", "F16", float16],
    ["bfloat16", "BF16", bfloat16],
  ] as const)("rounds floats to %s, and leaves integers", async (dtype, stored, format) => {
    const to = join(folder, "half.safetensors");
    const converted = await convert(goldenPath("every-kind.pt"), to, "--dtype", dtype, "--json");
    expect(JSON.parse(converted.output)).toMatchObject({
      tensors: 21,
      dtypes: { [stored]: 12, I64: 3, BOOL: 1, C64: 1 },
    });
    const { tensors } = readSafetensors(readFileSync(to));
    // 0 to 2 by steps of 1.25 in float64, and so on: all are exact in float16.
    const { data } = tensors.float64 ?? {};
    expect([...(data as Uint16Array)].map((code) => format.decode(code))).toEqual([
      2.5, 1.25, 0, 1.25, 2.5, 3.75,
    ]);
    expect(bytesOf(tensors.int32 as never)).toBe(golden["every-kind.pt"]?.int32?.bytes);
  });

  test("back to float32, and from float64", async () => {
    const half = join(folder, "half.safetensors");
    const whole = join(folder, "whole.safetensors");
    await convert(goldenPath("every-kind.pt"), half, "--dtype", "float16");
    expect((await convert(half, whole, "--dtype", "float32")).exitCode).toBe(0);
    const { tensors } = readSafetensors(readFileSync(whole));
    expect(tensors.float64).toEqual({
      dtype: "F32",
      shape: [2, 3],
      data: Float32Array.of(2.5, 1.25, 0, 1.25, 2.5, 3.75),
    });
  });

  test.each([
    [1e300, "float32", "ask for no dtype, which keeps float64"],
    [1e300, "float16", "ask for no dtype, which keeps float64"],
    [3.4e38, "float16", "take float32"],
    [3.4e38, "bfloat16", "take float32"],
    [-1e6, "float16", "take bfloat16 or float32"],
  ] as const)("advises for %s what holds it, not %s", async (number, dtype, advice) => {
    const from = join(folder, "large.safetensors");
    const data = Float64Array.of(1, number);
    writeFileSync(from, writeSafetensors({ a: { dtype: "F64", shape: [2], data } }));
    const { error } = await convert(from, join(folder, "new.safetensors"), "--dtype", dtype);
    expect(error).toBe(
      `halfstep-convert: ${from}: tensor "a": 1 of 2 elements are beyond the largest number of ${dtype}, and would become infinite: ${advice}\n`,
    );
  });

  test("refuses to make infinities, and leaves the old file alone", async () => {
    const from = join(folder, "large.safetensors");
    const to = join(folder, "old.safetensors");
    writeFileSync(
      from,
      writeSafetensors({
        a: { dtype: "F32", shape: [3], data: Float32Array.of(1, 1e6, Number.POSITIVE_INFINITY) },
      }),
    );
    writeFileSync(to, "old");
    const { error, exitCode } = await convert(from, to, "--dtype", "float16");
    expect([error, exitCode]).toEqual([
      `halfstep-convert: ${from}: tensor "a": 1 of 3 elements are beyond the largest number of float16, and would become infinite: take bfloat16 or float32\n`,
      2,
    ]);
    expect([readFileSync(to, "utf8"), readdirSync(folder).sort()]).toEqual([
      "old",
      ["large.safetensors", "old.safetensors"],
    ]);
    expect((await convert(from, to, "--dtype", "bfloat16")).exitCode).toBe(0);
  });

  test("shows progress, and takes it away", async () => {
    const shown: string[] = [];
    await run([goldenPath("every-kind.pt"), join(folder, "a.safetensors")], (text) =>
      shown.push(text),
    );
    expect(
      shown
        .map((text) => text.replaceAll(/\s+/g, " ").trim())
        .filter((text) => / 100 %/.test(text)),
    ).toEqual(["writing 100 % of 0.001 MB", "checking 100 % of 0.001 MB"]);
    expect(shown.at(-1)).toMatch(/^\r +\r$/);
  });

  test.each([
    [[], "name the weights and the new file, or see --help"],
    [["a.pt"], "name the weights and the new file, or see --help"],
    [["a.pt", "b.bin"], "b.bin: the new file is called *.safetensors"],
    [
      ["a.pt", "b.safetensors", "--dtype", "int8"],
      "--dtype int8 is none of float32, float16, bfloat16",
    ],
    [["--half"], "Unknown option '--half'; see --help"],
    [
      ["/none/a.pt", "b.safetensors"],
      "/none/a.pt: there is no such file or folder: check the path",
    ],
    [
      [goldenPath("gan.pt"), "b.safetensors"],
      `${goldenPath("gan.pt")}: has tensors under "generator", "critic": choose one by the option key`,
    ],
  ])("%j is refused in one line", async (args, message) => {
    expect(await convert(...args)).toEqual({
      output: "",
      error: `halfstep-convert: ${message}\n`,
      exitCode: 2,
    });
  });

  test("a full disk, which leaves the old file, and nothing beside it", async () => {
    const to = join(folder, "model.safetensors");
    writeFileSync(to, "old");
    const handle = await open(to);
    await handle.close();
    const full = Object.assign(new Error("ENOSPC: no space left on device, write"), {
      code: "ENOSPC",
    });
    using _ = vi.spyOn(Object.getPrototypeOf(handle), "write").mockRejectedValue(full);
    expect(await convert(goldenPath("module.pt"), to)).toEqual({
      ...{ output: "", exitCode: 4 },
      error: `halfstep-convert: ${to} cannot be written (no space left on the disk): make room, or choose a place on another disk\n`,
    });
    expect(readFileSync(to, "utf8")).toBe("old");
    expect(readdirSync(folder)).toEqual(["model.safetensors"]);
  });

  test("a folder in the way, and one that is not there", async () => {
    const from = goldenPath("training.pth");
    mkdirSync(join(folder, "a.safetensors"));
    expect((await convert(from, join(folder, "a.safetensors"))).exitCode).toBe(2);
    expect((await convert(from, join(folder, "none", "a.safetensors"))).exitCode).toBe(2);
    expect(readdirSync(folder)).toEqual(["a.safetensors"]);
    expect((await convert("--help")).output).toContain("npx halfstep-convert");
  });
});
