import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** What a program left behind. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly seconds: number;
}

export interface RunOptions {
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Called with all of stderr so far whenever there is more of it. */
  readonly onStderr?: (stderr: string, kill: (signal: NodeJS.Signals) => void) => void;
}

const fromRoot = (path: string): string =>
  fileURLToPath(new URL(`../../../${path}`, import.meta.url));

/** `npm start -- …flags` without its set-up. It leaves the bundle behind that {@link runBundle} runs. */
export const npmStart = (...flags: readonly string[]): Promise<Ended> =>
  run([fromRoot("scripts/start.mjs"), ...flags], {});

/** The app as `npm start` runs it, after the bundling. */
export const runBundle = (flags: readonly string[], options: RunOptions = {}): Promise<Ended> =>
  run([fromRoot("apps/digits/dist/main.js"), ...flags], options);

function run(args: readonly string[], { env, onStderr }: RunOptions): Promise<Ended> {
  const started = performance.now();
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, HALFSTEP_ADAPTER: "", ...env },
  });
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
    child.on("close", (code) =>
      resolve({ code, stdout, stderr, seconds: (performance.now() - started) / 1000 }),
    );
  });
}
