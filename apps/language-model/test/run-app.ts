import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** What a program left behind. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const fromRoot = (path: string): string =>
  fileURLToPath(new URL(`../../../${path}`, import.meta.url));

/** The app as `npm start -w language-model -- …` runs it. */
export const runApp = (...args: readonly string[]): Promise<Ended> =>
  run([fromRoot("scripts/run-app.mjs"), "language-model", "main", ...args]);

function run(
  args: readonly string[],
  onStderr?: (stderr: string, kill: (signal: NodeJS.Signals) => void) => void,
): Promise<Ended> {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
    onStderr?.(stderr, (signal) => child.kill(signal));
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}
