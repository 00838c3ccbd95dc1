import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** What a program left behind. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The app as `npm start -w text -- …` runs it, with something on its standard input. */
export function runApp(args: readonly string[], input = ""): Promise<Ended> {
  const runner = fileURLToPath(new URL("../../../scripts/run-app.mjs", import.meta.url));
  const child = spawn(process.execPath, [runner, "text", "main", ...args]);
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}
