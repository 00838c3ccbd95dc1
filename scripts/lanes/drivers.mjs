import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { whyNoLavapipe } from "../../tooling/browser/lavapipe.js";
import { chromium, ensureBrowser, firefox } from "../bootstrap/browsers.mjs";
import { prepareMpi } from "../bootstrap/mpi.mjs";
import { lastLines, run } from "../bootstrap/run.mjs";
import { findSwiftShader } from "./swiftshader.mjs";
import { installWgpu, wgpuFolder } from "./wgpu.mjs";

/**
 * @typedef Ready
 * @property {string[]} command that starts other commands on the driver; empty where variables suffice
 * @property {string[]} [vitest] the command that starts vitest; default `npx vitest`
 * @property {Record<string, string>} env
 * @property {string} version
 *
 * @typedef Driver
 * @property {() => Promise<Ready | { missing: string } | { failed: string }>} prepare `missing`: why it cannot run on this machine
 */

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const wrapper = join(root, "scripts", "lanes", "newer-mesa.sh");
/** The exit code of newer-mesa.sh on machines where it cannot run. */
const cannotRun = 69;

/** @type {Driver} */
export const newerMesa = {
  async prepare() {
    const { code, output } = await run(wrapper, ["node", "--version"], { label: "newer Mesa" });
    if (code === cannotRun) return { missing: lastLines(output, 1)[0] };
    if (code !== 0) return { failed: lastLines(output, 5).join("\n") };
    // Products of matrices become long programs, which its compiler makes in less CPU time when it optimizes them.
    return { command: [wrapper], env: { GALLIVM_PERF: "" }, version: lastLines(output, 2)[0] };
  },
};

/** The adapter of this machine, as `npm test` uses it. @type {Driver} */
export const ownAdapter = {
  async prepare() {
    return { command: [], env: {}, version: "the adapter of this machine" };
  },
};

/** @type {Driver} */
export const swiftShader = {
  async prepare() {
    if (process.platform !== "linux") return { missing: "not Linux" };
    const manifest = findSwiftShader();
    if (manifest === undefined) return { missing: "no Chromium was found; CHROME_PATH names one" };
    return {
      command: [],
      env: { VK_DRIVER_FILES: manifest, VK_ICD_FILENAMES: manifest },
      version: manifest,
    };
  },
};

/** Deno, whose WebGPU is wgpu, as that of Firefox is. @type {Driver} */
export const denoOnWgpu = {
  async prepare() {
    const failed = await installWgpu();
    if (failed !== undefined) return { failed };
    const deno = join(wgpuFolder, "node_modules", ".bin", "deno");
    const { code, output } = await run(deno, ["--version"], { label: "Deno" });
    if (code !== 0) return { failed: lastLines(output, 5).join("\n") };
    return {
      command: [],
      vitest: [
        ...[deno, "run", "--allow-all", "--unstable-webgpu", "--no-check"],
        join(root, "node_modules", "vitest", "vitest.mjs"),
      ],
      env: { HALFSTEP_TEST_GPU: "navigator" },
      version: output.split("\n")[0],
    };
  },
};

/**
 * A browser, installed if need be, that computes on the driver of the process that starts it.
 * @param {import("../bootstrap/browsers.mjs").Kind} kind
 * @param {Driver} driver
 * @returns {Driver}
 */
const browserOn = (kind, driver) => ({
  async prepare() {
    const found = await ensureBrowser(kind, (line) => console.log(`set-up: ${line}`));
    if (found.missing !== undefined) return { failed: found.missing };
    const ready = await driver.prepare();
    return { ...ready, ...(ready.version && { version: `${found.executable}, ${ready.version}` }) };
  },
});

/** Chromium on its own driver. */
export const chromiumOnSwiftShader = browserOn(chromium, swiftShader);

/** Chromium on the software driver of this machine. */
export const chromiumOnLavapipe = browserOn(chromium, {
  async prepare() {
    const missing = whyNoLavapipe();
    return missing === undefined ? ownAdapter.prepare() : { missing };
  },
});

/** Firefox on the software driver of this machine. */
export const firefoxOnLavapipe = browserOn(firefox, {
  async prepare() {
    const failed = await installWgpu();
    return failed === undefined ? ownAdapter.prepare() : { failed };
  },
});

/** Open MPI and MPICH, which Debian and Ubuntu install themselves. @type {Driver} */
export const bothMpis = {
  async prepare() {
    const found = {};
    for (const kind of ["openmpi", "mpich"]) {
      found[kind] = await prepareMpi(kind, (line) => console.log(`        ${line}`));
      if (found[kind].missing !== undefined) return found[kind];
    }
    const { openmpi, mpich } = found;
    return {
      command: [],
      env: {
        ...openmpi.env,
        HALFSTEP_TEST_LAUNCHERS: [openmpi, mpich].map((mpi) => mpi.launcher).join(),
      },
      version: "Open MPI and MPICH",
    };
  },
};
