import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { run } from "./run.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-formats-cli-"));
const file = (name: string, content: Uint8Array | string = ""): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

const loop = join(folder, "loop.npy");
symlinkSync(loop, loop);

let program = "";
beforeAll(async () => {
  if (process.env.BUILT === "1") {
    program = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
    return;
  }
  program = join(folder, "main.mjs");
  await build({
    entryPoints: [fileURLToPath(new URL("main.ts", import.meta.url))],
    outfile: program,
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "warning",
  });
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const formats = (...args: readonly string[]): Promise<Ended> => formatsWith("", args);

function formatsWith(FORCE_COLOR: string, args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, FORCE_COLOR },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

/** A .npy as numpy writes it: the header is padded to 64 bytes and ends with a new line. */
function npy(header: string, data: ArrayBufferView, version = 1): Uint8Array {
  const prefix = version === 1 ? 10 : 12;
  const length = Math.ceil((prefix + header.length + 1) / 64) * 64 - prefix;
  const text = `${header.padEnd(length - 1)}\n`;
  const sizes = version === 1 ? [length & 255, length >> 8] : [length & 255, length >> 8, 0, 0];
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const start = Uint8Array.of(0x93, ...Buffer.from("NUMPY"), version, 0, ...sizes);
  return Buffer.concat([start, Buffer.from(text), bytes]);
}
const header = (descr: string, shape: string): string =>
  `{'descr': '${descr}', 'fortran_order': False, 'shape': ${shape}, }`;

describe("the process", () => {
  test("numbers in two formats", async () => {
    expect(await formats("0.1", "65519.99", "--format", "float16,float8e4m3fn")).toEqual({
      code: 0,
      stderr: "",
      stdout: `0.1
  format        bits                code    stored           error        ulp
  float16       0 01011 1001100110  0x2e66  0.0999755859375  -0.00002441  0.00006104
  float8e4m3fn  0 0011 101          0x1d    0.1015625        0.001562     0.0078125

65519.99
  format        bits                code    stored  error   ulp
  float16       0 11110 1111111111  0x7bff  65504   -15.99  32   largest
  float8e4m3fn  0 1111 111          0x7f    NaN     NaN     32   overflow
`,
    });
  });

  test("negative numbers, NaN and infinities are no options", async () => {
    const args = ["-1.5", "-0", "-inf", "-.5e-3", "nan", "--format=float16", "--json"];
    const { code, stdout } = await formats(...args);
    expect(code).toBe(0);
    const { numbers } = JSON.parse(stdout);
    expect(numbers.map((each: { input: string; value: number | string }) => each.value)).toEqual([
      -1.5,
      "-0",
      "-Infinity",
      -0.0005,
      "NaN",
    ]);
    expect(numbers[0]).toEqual({
      input: "-1.5",
      value: -1.5,
      formats: [
        {
          format: "float16",
          code: 0xbe00,
          hex: "0xbe00",
          bits: "1011111000000000",
          value: -1.5,
          error: 0,
          ulp: 2 ** -10,
          kind: "normal",
        },
      ],
    });
  });

  test.each([
    [
      2,
      ["0.1", "abc"],
      '"abc" is no number: write 0.1, -6.5e-8, 0xff, 0x1.8p-3, nan or inf; options are in --help',
    ],
    [2, [], "name a number, or see --help"],
    [2, ["--round", "1"], "Unknown option '--round'; see --help"],
    [2, ["--histogram", "absent.npy"], "absent.npy does not exist"],
    [4, ["--histogram", loop], `${loop} cannot be read (ELOOP)`],
  ])("exit code %i: formats %j", async (code, args, line) => {
    expect(await formats(...args)).toEqual({ code, stdout: "", stderr: `formats: ${line}\n` });
  });

  test("a histogram of 300,000 numbers in pieces", async () => {
    const values = Float32Array.from({ length: 300_000 }, (_, i) => 2 ** -(i % 30));
    const path = file("many.npy", npy(header("<f4", "(300, 1000)"), values));
    const { code, stdout } = await formats("--histogram", path, "--format", "float16", "--json");
    expect(code).toBe(0);
    const { histogram, formats: recommended, ...rest } = JSON.parse(stdout);
    expect(rest).toEqual({
      schema: 1,
      path,
      dtype: "float32",
      shape: [300, 1000],
      count: 300_000,
    });
    expect(histogram).toMatchObject({ count: 300_000, firstExponent: -29, max: 1 });
    expect(histogram.counts).toEqual(new Array(30).fill(10_000));
    expect(recommended).toMatchObject([{ format: "float16", exponent: 15, overflow: 0 }]);
  });

  test("colours where they are asked for", async () => {
    const { stdout } = await formatsWith("1", ["1", "--format=float4e2m1fn"]);
    expect(stdout).toContain("\u001b[31m0");
  });

  test("help", async () => {
    const { code, stdout } = await formats("--help");
    expect(code).toBe(0);
    expect(stdout).toContain("Exit codes: 0; 2 wrong usage or input; 4 a file could not be read.");
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThan(121);
  });
});

const plain = (...args: readonly string[]): string => {
  const { stdout, stderr, exitCode } = run(args, { color: false });
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return stdout;
};
const stored = (...args: readonly string[]): (number | string)[] =>
  JSON.parse(plain("--json", ...args)).numbers.flatMap((each: { formats: { value: number }[] }) =>
    each.formats.map(({ value }) => value),
  );
const failure = (...args: readonly string[]): string => run(args, { color: false }).stderr;

describe("numbers", () => {
  test("all formats by default", () => {
    expect(plain("1").split("\n")).toHaveLength(15 + 3);
  });

  test("bits are coloured on terminals", () => {
    const { stdout } = run(["1", "--format", "float4e2m1fn"], { color: true });
    expect(stdout).toContain(
      "\u001b[31m0\u001b[0m \u001b[32m01\u001b[0m \u001b[36m0\u001b[0m  0x2",
    );
    expect(plain("1")).not.toContain("\u001b");
  });

  test("what is read as a number", () => {
    const texts = [
      "0xff",
      "-0x10",
      "0b101",
      "0o17",
      "+3",
      "1e3",
      "0x1.8p-3",
      "-0x.8p1",
      "Infinity",
      "-NaN",
      "0x1p-1074",
      "0x1p1023",
    ];
    const numbers = JSON.parse(plain("--json", "--format=float32", ...texts)).numbers;
    expect(numbers.map(({ value }: { value: number }) => value)).toEqual([
      255,
      -16,
      5,
      15,
      3,
      1000,
      0.1875,
      -1,
      "Infinity",
      "NaN",
      Number.MIN_VALUE,
      2 ** 1023,
    ]);
    for (const text of [
      "",
      ".",
      "1.2.3",
      "0x",
      "--1",
      "1e",
      "1_000",
      "0x1.00000000000001p0",
      "0xp1",
      "1n",
    ]) {
      expect(failure(text === "--1" ? "+-1" : text)).toContain("is no number");
    }
  });

  test("roundings and saturation", () => {
    const of16 = (...args: string[]) => stored("--format=float16", ...args);
    expect(of16("2049", "--rounding=up")).toEqual([2050]);
    expect(of16("70000", "--saturate")).toEqual([65504]);
    expect(of16("2049", "--rounding=stochastic", "--bits=0")).toEqual([2048]);
    expect(of16("2049", "--rounding=stochastic", "--bits=0xffffffff")).toEqual([2050]);
    expect(failure("1", "--rounding=stochastic")).toContain("and --bits go together");
    expect(failure("1", "--bits=1")).toContain("and --bits go together");
    expect(failure("1", "--rounding=stochastic", "--bits=-1")).toContain("--bits -1 is no integer");
    expect(failure("1", "--rounding=near")).toContain(
      'there is no rounding "near": use nearestEven',
    );
    expect(failure("1", "--format=half")).toContain('there is no format "half": use float32');
  });

  test("what a format cannot store", () => {
    const text = plain("nan", "-1", "1e-9", "100", "--format", "float4e2m1fn,float8e8m0fnu");
    const kinds = text.match(/(not storable|underflow|largest|nan|subnormal)$/gm);
    expect(kinds).toEqual(["not storable", "nan", "not storable", "underflow", "largest"]);
    expect(text).toContain("float4e2m1fn   -         -     NaN");
  });
});

describe("files of numbers", () => {
  const histogram = (path: string): Record<string, unknown> =>
    JSON.parse(plain("--histogram", path, "--json", "--format", "bfloat16"));

  test("three dtypes, three versions, any shape", () => {
    const halves = file("a.npy", npy(header("<f2", "(3,)"), Uint16Array.of(0x3c00, 0x7c00, 1), 2));
    expect(histogram(halves)).toMatchObject({
      dtype: "float16",
      histogram: { count: 3, infinities: 1, min: 2 ** -24, max: 1 },
    });
    const doubles = file("b.npy", npy(header("<f8", "()"), Float64Array.of(1e-300), 3));
    expect(histogram(doubles)).toMatchObject({ shape: [], count: 1, histogram: { max: 1e-300 } });
    const empty = file("c.npy", npy(header("<f4", "(2, 0, 5)"), new Float32Array()));
    expect(histogram(empty)).toMatchObject({ shape: [2, 0, 5], count: 0 });
    const transposed = header("<f4", "(2, 1)").replace("False", "True");
    expect(histogram(file("f.npy", npy(transposed, Float32Array.of(1, 2))))).toMatchObject({
      shape: [2, 1],
      histogram: { count: 2, min: 1, max: 2 },
    });
    const bare = file("d.F32", new Uint8Array(Float32Array.of(4, 8).buffer));
    expect(histogram(bare)).toMatchObject({ dtype: "float32", shape: [2], count: 2 });
  });

  test("bars and shares", () => {
    const values = Float32Array.of(0, 1, 1, 1e-9, 3, Number.NaN, 2e5, -1e-5);
    const text = plain(
      "--histogram",
      file("e.f32", new Uint8Array(values.buffer)),
      "--format=float16",
    );
    expect(text).toContain("8 float32 numbers");
    expect(text).toContain("zero 12.5 %, infinite 0 %, NaN 12.5 %; others from 1e-9 to 200000");
    expect(text).toContain(`2^0    25 %    ${"#".repeat(50)}\n`);
    expect(text).toMatch(/float16 +14\.3 % +14\.3 % +14\.3 % +2\^-2 +0 % +14\.3 % +14\.3 %/);
    expect(failure("--histogram", "e.f32", "1")).toContain("--histogram takes no numbers");
    const e8m0 = failure("--histogram", join(folder, "e.f32"), "--format=float8e8m0fnu");
    expect(e8m0).toContain("is a format of scales");
  });

  const one = Float32Array.of(1);
  test.each([
    [
      "truncated data",
      npy(header("<f4", "(2,)"), one),
      "132 bytes, but 2 float32 numbers from byte 128 on need 136",
    ],
    ["bytes too many", npy(header("<f4", "()"), Float32Array.of(1, 2)), "on need 132"],
    ["big-endian", npy(header(">f4", "(1,)"), one), "holds >f4: use little-endian"],
    ["integers", npy(header("<i4", "(1,)"), one), "holds <i4: use little-endian"],
    [
      "an order that is no truth value",
      npy(header("<f4", "(1,)").replace("False", "'C'"), one),
      "its fortran_order is 'C'",
    ],
    ["a huge shape", npy(header("<f4", "(99999999, 99999999, 9)"), one), "is too large"],
    ["a negative shape", npy(header("<f4", "(-1,)"), one), 'its header has "'],
    ["a shape that is no tuple", npy(header("<f4", "(1)"), one), "its shape is (1)"],
    [
      "code in the header",
      npy(header("<f4", "(1,)").replace("(1,)", "exit(1)"), one),
      'its header has "',
    ],
    [
      "two entries",
      npy(`{'descr': '<f4', ${header("<f4", "(1,)").slice(1)}`, one),
      "two entries descr",
    ],
    ["a missing entry", npy("{'descr': '<f4', 'shape': (1,), }", one), "has no fortran_order"],
    ["no dictionary", npy("[]", one), "its header is no dictionary"],
    [
      "another version",
      Uint8Array.from(npy("{}", one), (byte, i) => (i === 6 ? 9 : byte)),
      "version 9 is unknown",
    ],
    [
      "a header beyond the file",
      Uint8Array.of(0x93, ...Buffer.from("NUMPY"), 1, 0, 200, 0),
      "it ends within its header",
    ],
    [
      "a header of 4 GB",
      Uint8Array.of(0x93, ...Buffer.from("NUMPY"), 2, 0, 255, 255, 255, 255),
      "claims 4294967295 bytes",
    ],
    ["nothing", new Uint8Array(), "it ends within its header"],
    ["another file", Buffer.from("PK\u0003\u0004 and so on"), "it does not begin with \\x93NUMPY"],
  ])("%s is refused in one line", (name, content, message) => {
    const path = file(`${name}.npy`, content);
    const { stdout, stderr, exitCode } = run(["--histogram", path], { color: false });
    expect(stderr).toContain(message);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: 2 });
  });

  test("other names, odd sizes and folders are refused", () => {
    expect(failure("--histogram", file("x.bin"))).toContain("is neither .npy nor .f32");
    expect(failure("--histogram", file("x.f32", "12345"))).toContain("no multiple of 4");
    expect(failure("--histogram", `${folder}.npy`)).toContain("does not exist");
  });
});
