import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** What a program left behind. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The app as `npm start -w super-resolution -- …` runs it. */
export function runApp(...args: readonly string[]): Promise<Ended> {
  const runner = fileURLToPath(new URL("../../../scripts/run-app.mjs", import.meta.url));
  const child = spawn(process.execPath, [runner, "super-resolution", "main", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
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
