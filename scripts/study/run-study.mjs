import { spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The runs in a file of JSON lines; an empty list if there is no file. */
export const readRuns = (file) =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
    : [];

/**
 * Runs a study sequentially, each run in a process of its own, and appends the outcomes to a file. A failed run is reported and adds no
 * line.
 * @param {{ bundle: string, missing: readonly { variant: string, seed: number }[], file: string, machine: string, say: (line: string) => void }} options
 * @returns {Promise<number>} The number of failed runs.
 */
export async function runStudy({ bundle, missing, file, machine, say }) {
  const scratch = mkdtempSync(join(tmpdir(), "halfstep-study-"));
  let failed = 0;
  for (const { variant, seed } of missing) {
    const outcome = await runOne(bundle, variant, seed, join(scratch, "outcome.json"));
    if (typeof outcome === "string") {
      failed++;
      say(`failed: ${variant}, seed ${seed}: ${outcome}`);
      continue;
    }
    appendFileSync(file, `${JSON.stringify({ variant, seed, machine, outcome })}\n`);
    say(
      `${variant}, seed ${seed}: ${Number(outcome.metric?.toPrecision(6) ?? Number.NaN)}, in ${Math.round(outcome.wallSeconds)} s`,
    );
  }
  rmSync(scratch, { recursive: true });
  return failed;
}

/** The outcome of a run, or the reason why it has none. */
const runOne = (bundle, variant, seed, file) =>
  new Promise((resolve) => {
    rmSync(file, { force: true });
    const program = fileURLToPath(new URL("run-one.mjs", import.meta.url));
    const child = spawn(process.execPath, [program, bundle, variant, String(seed), file], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    child.on("error", ({ message }) => resolve(message));
    child.on("close", (code, signal) => {
      if (code === 0 && existsSync(file)) resolve(JSON.parse(readFileSync(file, "utf8")));
      else
        resolve(/^\w*Error: .*$/m.exec(stderr)?.[0] ?? `its process ended with ${signal ?? code}`);
    });
  });
