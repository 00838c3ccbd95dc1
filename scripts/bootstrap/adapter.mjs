import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { driverFolder, unpackedDriver } from "./unpacked-driver.mjs";

// Runs in a process of its own because a broken driver can crash or hang it. The object that create() returns is kept
// referenced, because Dawn's bindings stop working once it is garbage-collected.
const program = `
  const { create } = await import("webgpu");
  globalThis.gpu = create(["enable-dawn-features=allow_unsafe_apis"]);
  const adapter = await globalThis.gpu.requestAdapter();
  const device = await adapter?.requestDevice();
  const { vendor = "", architecture = "", description = "" } = adapter?.info ?? {};
  const name = description || [vendor, architecture].filter(Boolean).join(" ") || "unnamed";
  process.stdout.write("\\n" + JSON.stringify({ adapter: device ? name : null }) + "\\n", () => process.exit(0));
`;

/**
 * Reads the result of the probing process.
 * @param {{ code: number | null, signal: string | null, stdout: string, stderr: string, timedOut: boolean }} end
 * @returns {{ adapter?: string, reason?: string }} the adapter's name, or why there is none
 */
export const readProbe = ({ code, signal, stdout, stderr, timedOut }) => {
  if (timedOut) return { reason: "the graphics driver did not answer in time" };
  for (const line of stdout.split("\n").reverse()) {
    if (!line.startsWith("{")) continue;
    const { adapter } = JSON.parse(line);
    return adapter === null ? { reason: "no graphics driver that Dawn accepts" } : { adapter };
  }
  if (signal !== null) return { reason: `the graphics driver crashed (${signal})` };
  const message = stderr.split("\n").find((line) => /Error/.test(line)) ?? `exit status ${code}`;
  return { reason: `the webgpu package does not load: ${message.trim()}` };
};

/**
 * Asks Dawn for an adapter and a device, in a child process.
 * @param {string} root a folder from which `webgpu` resolves
 */
export const probeAdapter = (root, timeoutMs = 60_000) =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "";
    let stderr = "";
    let timedOut = false;
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
    });
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill("SIGKILL");
    }, timeoutMs);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve(readProbe({ code, signal, stdout, stderr, timedOut }));
    });
  });

/**
 * Variables that Mesa needs and this environment lacks: a runtime directory, and without a home directory a place for
 * compiled shaders (a warm cache starts a run a hundred times faster). Those of the driver in the user's cache come with them.
 */
export const gpuEnvironment = (env = process.env, platform = process.platform) => {
  if (platform !== "linux") return {};
  const own = join(tmpdir(), `halfstep-${process.getuid?.() ?? 0}`);
  const missing = unpackedDriver(driverFolder(env), env);
  if (!env.XDG_RUNTIME_DIR) missing.XDG_RUNTIME_DIR = own;
  if (!env.MESA_SHADER_CACHE_DIR && !env.XDG_CACHE_HOME && !env.HOME) {
    missing.MESA_SHADER_CACHE_DIR = join(own, "mesa");
  }
  if (Object.values(missing).some((path) => path.startsWith(own)))
    mkdirSync(own, { recursive: true, mode: 0o700 });
  return missing;
};

/**
 * Gives this process the variables of {@link gpuEnvironment}. Where the C library has to read them, the process starts itself again
 * with them and ends as that ends.
 */
export const enterGpuEnvironment = async () => {
  const missing = gpuEnvironment();
  Object.assign(process.env, missing);
  if (missing.LD_LIBRARY_PATH === undefined) return;
  const args = [...process.execArgv, ...process.argv.slice(1)];
  const child = spawn(process.execPath, args, { stdio: "inherit" });
  // A terminal sends its signals to both.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  const [code] = await once(child, "close");
  process.exit(code ?? 1);
};
