// Makes a fresh clone ready: `node scripts/bootstrap.mjs start|test`, called by the commands of the root, such as `npm start` and `npm test`.
// It installs missing or outdated npm dependencies, and for the tests the data of all apps. Then it looks for a WebGPU adapter. Without one
// it installs Mesa's software Vulkan driver if the machine allows that. The script imports Node built-ins only, because it runs before
// anything is installed.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gpuEnvironment, probeAdapter } from "./bootstrap/adapter.mjs";
import { datasetFolders, installDataset, testLibraryFolders } from "./bootstrap/datasets.mjs";
import { driverPlan, machine } from "./bootstrap/driver.mjs";
import { readInstallState, staleInstall } from "./bootstrap/install.mjs";
import { installPackages } from "./bootstrap/install-packages.mjs";
import { nodeIsTooOld } from "./bootstrap/node-version.mjs";
import { lastLines, run } from "./bootstrap/run.mjs";
import { driverFolder, unpackDriver } from "./bootstrap/unpacked-driver.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const purpose = process.argv[2] === "test" ? "test" : "start";
const say = (line) => process.stdout.write(`set-up: ${line}\n`);

const fail = (...lines) => {
  for (const line of lines) process.stderr.write(`set-up: ${line}\n`);
  process.exit(1);
};

const required = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).engines.node;
if (nodeIsTooOld(process.versions.node, required)) {
  fail(`Node ${process.versions.node} is too old: install Node ${required} or newer (nodejs.org).`);
}

const { lock, installed } = readInstallState(root);
const stale = staleInstall(lock, installed);
if (stale !== undefined) {
  say(`${stale}; running npm ci (about a minute)`);
  // The dev dependencies build and test; NODE_ENV=production or an `omit` setting would leave them out.
  // Errors are needed under `npm run --silent`, too, which npm passes on.
  const flags = ["--include=dev", "--no-audit", "--no-fund", "--loglevel=notice"];
  const result = await run("npm", ["ci", ...flags], { cwd: root, label: "npm ci" });
  if (result.code !== 0)
    fail(...lastLines(result.output, 15), "npm ci failed (its last lines above).");
  say(`npm ci done in ${result.seconds.toFixed(0)} s`);
}

// An app installs its data at its first use; the tests use all apps, and libraries to compare with.
if (purpose === "test") {
  const folders = [...datasetFolders(root), ...testLibraryFolders(root)];
  const installs = folders.map((folder) => installDataset(folder, say));
  const failures = (await Promise.all(installs)).flat();
  if (failures.length > 0) fail(...failures);
}

Object.assign(process.env, gpuEnvironment());
let probe = await probeAdapter(root);

let advice = [];
const doing = {
  install: "installing it with apt",
  unpack: "unpacking it into your cache, because installing it needs root",
};

if (probe.adapter === undefined) {
  const plan = driverPlan(machine());
  advice = plan.instructions;
  if (plan.kind !== "instruct") {
    say(`no WebGPU adapter: ${probe.reason}`);
    say(`${plan.why}; ${doing[plan.kind]} (HALFSTEP_NO_INSTALL=1 forbids this)`);
    const failure = await (plan.kind === "install"
      ? installPackages(plan, say)
      : unpackForUser(plan));
    Object.assign(process.env, gpuEnvironment());
    probe = await probeAdapter(root);
    advice = [
      failure ?? "The driver is there, yet Dawn accepts no adapter.",
      "By hand, as root:",
      ...plan.instructions,
    ];
  }
}

if (probe.adapter !== undefined) {
  say(`WebGPU adapter: ${probe.adapter}`);
} else if (purpose === "start") {
  say(`no WebGPU adapter (${probe.reason}): training will run on the CPU, slowly. ${advice[0]}`);
} else {
  fail(
    `the tests need a WebGPU adapter and there is none: ${probe.reason}.`,
    ...advice,
    "Then run npm test again.",
  );
}

/** Unpacks the driver of a plan into the user's cache; returns a description of the failure, if there is one. */
async function unpackForUser(plan) {
  const folder = driverFolder();
  const failure = await unpackDriver(folder, plan);
  if (failure === undefined) say(`Mesa's software driver is in ${folder}`);
  return failure;
}
