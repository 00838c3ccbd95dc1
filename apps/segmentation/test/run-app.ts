import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** What a program left behind. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  /** Without what Dawn warns of. */
  readonly stderr: string;
}

const program = fileURLToPath(new URL("../../../scripts/run-app.mjs", import.meta.url));

/** The app as `npm start -w segmentation -- …` runs it. */
export function runApp(...args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [program, "segmentation", "main", ...args], {
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
    child.on("close", (code) =>
      resolve({ code, stdout, stderr: stderr.replaceAll(/^Warning: .*\n/gm, "") }),
    );
  });
}
