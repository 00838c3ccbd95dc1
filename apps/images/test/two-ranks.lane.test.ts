import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runApp } from "@halfstep/vitest/run-app";
import { afterAll, describe, expect, it } from "vitest";

const root = mkdtempSync(join(tmpdir(), "halfstep-two-ranks-"));
afterAll(() => rmSync(root, { recursive: true }));

const out = join(root, "run");
const launcher = fileURLToPath(new URL("../../../scripts/distributed.mjs", import.meta.url));
const flags = [
  ...["--dynamic-loss-scale", "--init-scale", "1024", "--device", "cpu", "--width", "4"],
  ...["--limit", "96", "-b", "8", "--wire", "float16", "--save-every", "3", "--out", out],
];

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Seconds from the moment in which `onStep` returned. */
  readonly secondsAfter: number;
}

/** Two ranks of the app. `onStep` is called when the first step was reported. */
function twoRanks(more: readonly string[], onStep?: () => void): Promise<Ended> {
  const args = [launcher, "--nproc_per_node=2", "images", ...flags, ...more];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  let steppedAt: number | undefined;
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
    if (steppedAt !== undefined || !/step \d+\/\d+/.test(stderr)) return;
    steppedAt = performance.now();
    onStep?.();
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) =>
      resolve({
        ...{ code, stdout, stderr },
        secondsAfter: (performance.now() - (steppedAt ?? 0)) / 1000,
      }),
    );
  });
}

/** The process of rank 1 of this test's job, by its environment and arguments. */
function rankOne(): number {
  const read = (pid: string, file: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, "latin1");
    } catch {
      return "";
    }
  };
  const found = readdirSync("/proc").find(
    (pid) =>
      /^\d+$/.test(pid) &&
      read(pid, "environ").includes("OMPI_COMM_WORLD_RANK=1\0") &&
      read(pid, "cmdline").includes(out),
  );
  return Number(found);
}

interface RunSummary {
  readonly parameterSha256: string;
  readonly steps: number;
}

const summaryOf = (): RunSummary =>
  JSON.parse(readFileSync(join(out, "summary.json"), "utf8")).runs[0];

const metrics = (): string => readFileSync(join(out, "metrics.jsonl"), "utf8");

describe("two ranks of a program", () => {
  it("end by themselves where one is killed, and the launcher names it", async () => {
    const { code, stderr, secondsAfter } = await twoRanks(["--epochs", "200"], () =>
      process.kill(rankOne(), "SIGKILL"),
    );
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/rank 1 .*exited on signal 9/);
    // Within five seconds on a machine that does nothing else.
    expect(secondsAfter).toBeLessThan(60);
  });

  it.each(["allReduce", "zero1"])(
    "train with equal parameters by %s; rank 0 speaks for both; one process goes on with the same batches",
    async (mode) => {
      const { code, stdout, stderr } = await twoRanks(["--epochs", "1", "--exchange", mode]);
      expect(stderr).not.toContain("error");
      // The app compares the hashes of all ranks.
      expect(code).toBe(0);
      expect(stdout.match(/test accuracy/g)).toHaveLength(1);
      // 96 images, 8 for each rank.
      expect(summaryOf().steps).toBe(6);
      const before = metrics();
      const alone = await runApp("images", [
        ...[...flags, "--epochs", "2", "--exchange", mode, "--resume", "auto"],
      ]);
      expect(alone.stderr).toContain("after step 6");
      expect(alone.code).toBe(0);
      // It keeps the global batch of 16.
      expect(summaryOf().steps).toBe(12);
      expect(metrics().startsWith(before)).toBe(true);
    },
  );
});
