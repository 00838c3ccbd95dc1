import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { gpuEnvironment } from "../../scripts/bootstrap/adapter.mjs";
import { nodeFlags } from "./node-flags.js";

const fromRoot = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

const bundled = new Set();

/** `npm start -w APP -- …args`, without npm. */
export const runApp = async (app, args, options) => {
  if (bundled.has(app)) return runBundle(app, args, options);
  const ended = await runNode([fromRoot("scripts/run-app.mjs"), app, "main", ...args], options);
  bundled.add(app);
  return ended;
};

/** `npm start -- …args`, without npm and its set-up. */
export const runStart = (args, options) =>
  runNode([fromRoot("scripts/start.mjs"), ...args], options);

/** The bundle that one of the others has left behind: as they run it, without bundling again. */
export const runBundle = (app, args, options) =>
  runNode([fromRoot(`apps/${app}/dist/main.js`), ...args], options);

function runNode(args, { input, env, onStderr } = {}) {
  const started = performance.now();
  const child = spawn(process.execPath, [...nodeFlags, ...args], {
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    // The environment of the tests may select another adapter for other programs.
    env: { ...process.env, ...gpuEnvironment(), HALFSTEP_ADAPTER: "", ...env },
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
  child.stdin?.end(input);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) =>
      resolve({ code, stdout, stderr, seconds: (performance.now() - started) / 1000 }),
    );
  });
}
