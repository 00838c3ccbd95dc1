import { describe, expect, it } from "vitest";
import { describeProgress, type TrainingProgress, trainingProgress } from "./progress.js";

const at = (step: number): TrainingProgress => ({
  epoch: 1,
  epochs: 2,
  step,
  steps: 100,
  loss: 1 / step,
  samplesPerSecond: 612.3,
  scale: 65536,
  skipped: 2,
});

const recorder = (isTTY: boolean) => {
  const written: string[] = [];
  return { isTTY, written, write: (text: string) => written.push(text) };
};

describe("describeProgress", () => {
  it("says where training stands and how long it still takes", () => {
    expect(describeProgress(at(25), 50)).toBe(
      "epoch 1/2 · step 25/100 · loss 0.0400 · 612 samples/s · scale 65,536 · skipped 2 · 2 min 30 s left",
    );
  });

  it("leaves out the scale where there is none, and guesses nothing before the first step", () => {
    expect(
      describeProgress({ ...at(0), loss: undefined, scale: 1, skipped: 0, samplesPerSecond: 0 }, 3),
    ).toBe("epoch 1/2 · step 0/100 · loss – · 0.00 samples/s · – left");
  });

  it("guesses from the steps that this process has done", () => {
    expect(describeProgress(at(60), 10, 40)).toMatch(/ · 20 s left$/);
    expect(describeProgress(at(40), 10, 40)).toMatch(/ · – left$/);
  });

  it("ends with the time that it took", () => {
    expect(describeProgress(at(100), 61)).toMatch(/ · 1 min 01 s$/);
  });
});

describe("trainingProgress", () => {
  it("writes plain lines, at most one every few seconds, to what is no terminal", () => {
    const stream = recorder(false);
    let time = 0;
    const progress = trainingProgress("float16", stream, { interval: 5, now: () => time });
    for (let step = 1; step <= 100; step++) {
      progress.update(at(step));
      time += 200;
    }
    progress.note("step 99 skipped, scale 65536 → 32768");
    progress.stop();
    expect(stream.written.map((line) => /step (\d+)/.exec(line)?.[1])).toEqual([
      "1",
      "26",
      "51",
      "76",
      "100",
      "99",
    ]);
    expect(stream.written.every((line) => line.endsWith("\n") && !line.includes("\u001b"))).toBe(
      true,
    );
    expect(stream.written[0]).toMatch(/^float16 · epoch 1\/2 · /);
  });

  it("shows that programs are compiled, and guesses without that time", () => {
    const stream = recorder(false);
    let time = 0;
    const progress = trainingProgress("float16", stream, { interval: 5, now: () => time });
    const compile = (total: number, milliseconds: number): void => {
      for (let compiled = 0; compiled <= total; compiled++) {
        if (compiled > 0) time += milliseconds;
        progress.compiling({ compiled, total, kernel: "matmul" });
      }
    };
    compile(40, 300);
    time += 1000;
    expect(progress.seconds).toBe(1);
    progress.update(at(1));
    compile(3, 10);
    time += 24_000;
    progress.update(at(25));
    expect(stream.written).toEqual([
      "float16 · compiling 4 of 40 programs\n",
      "float16 · compiling 21 of 40 programs\n",
      "float16 · compiling 38 of 40 programs\n",
      expect.stringMatching(/step 1\/100 .* 1 min 39 s left\n$/),
      expect.stringMatching(/step 25\/100 .* 1 min 15 s left\n$/),
    ]);
  });

  it("stands still while programs are compiled", () => {
    let time = 0;
    const progress = trainingProgress("x", recorder(false), { now: () => time });
    progress.compiling({ compiled: 0, total: 2, kernel: "matmul" });
    time += 700;
    expect(progress.seconds).toBe(0);
  });

  it("shows where a stopped run stood", () => {
    const stream = recorder(false);
    const progress = trainingProgress("x", stream, { now: () => 0 });
    progress.update(at(1));
    progress.update(at(40));
    progress.stop();
    expect(stream.written.at(-1)).toContain("step 40/100");
  });

  it("draws a bar on a terminal and keeps notes above it", () => {
    const written: string[] = [];
    const terminal = Object.assign(recorder(true), {
      written,
      write: (text: string) => written.push(text),
      columns: 200,
      cursorTo: () => true,
      clearLine: () => true,
      clearScreenDown: () => true,
      moveCursor: () => true,
      on: () => terminal,
      once: () => terminal,
      removeListener: () => terminal,
    });
    const progress = trainingProgress("float16", terminal);
    progress.note("before");
    progress.compiling({ compiled: 3, total: 4, kernel: "matmul" });
    progress.update(at(50));
    progress.note("step 50 skipped");
    progress.stop();
    const text = written.join("");
    expect(text).toContain("before\n");
    expect(text).toContain("float16 ███████████████░░░░░ compiling 3 of 4 programs");
    expect(text).toContain("step 50 skipped\n");
    expect(text).toContain("float16 ██████████░░░░░░░░░░ epoch 1/2 · step 50/100");
  });
});
