// Runs the tests of the packages that need no GPU, as built, on the oldest version of Node that `engines` allows and on the later
// versions with long-term support. Then it trains with `npm start` on the newest. Each version counts once, and so does the training.
// The last line is one total.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gpuEnvironment } from "./bootstrap/adapter.mjs";
import { readInstallState, staleInstall } from "./bootstrap/install.mjs";
import { lastLines, run } from "./bootstrap/run.mjs";
import { totalLine } from "./test/total.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, "scripts", "node-versions");

// Suites that need a GPU are left out: they run the same code of Node, and would double the time.
const packages = ["formats", "grad-scaler", "safetensors", "autocast", "data", "torch-files"];

const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const versions = Object.entries(dependencies).map(([alias, range]) => ({
  version: range.replace("npm:node@", ""),
  bin: join(folder, "node_modules", alias, "bin"),
}));
const newest = versions.at(-1);

/** The environment in which `node` and all programs that npm starts use the Node of a folder. */
const onNode = (bin) => ({
  ...process.env,
  ...gpuEnvironment(),
  PATH: `${bin}${delimiter}${process.env.PATH}`,
});

const total = { passed: 0, failed: 0 };
const count = (what, { code, output, seconds }) => {
  if (code === 0) total.passed++;
  else {
    total.failed++;
    for (const line of lastLines(output, 40)) console.log(line);
  }
  console.log(`${code === 0 ? "ok     " : "FAILED "} ${what} (${seconds.toFixed(1)} s)`);
};

const { lock, installed } = readInstallState(folder);
if (staleInstall(lock, installed) !== undefined) {
  // The package `node` puts its program in place by a script, which the project's settings forbid.
  const flags = ["ci", "--ignore-scripts=false"];
  const result = await run("npm", flags, { cwd: folder, label: "versions of Node" });
  count("install", result);
}

/** The version of Node that programs find in an environment, and on which the tests would run. */
const versionOf = (env) =>
  new Promise((resolve) => {
    const child = spawn("node", ["--version"], { env, stdio: ["ignore", "pipe", "ignore"] });
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
    });
    child.on("error", () => resolve("none"));
    child.on("close", () => resolve(output.trim()));
  });

for (const { version, bin } of versions) {
  const env = onNode(bin);
  const found = await versionOf(env);
  if (found !== `v${version}`) {
    console.log(
      `FAILED  Node ${version} is ${found} in ${bin}: delete ${folder}/node_modules and run again`,
    );
    total.failed++;
    continue;
  }
  const filters = packages.map((name) => `--filter=@halfstep/${name}`);
  const args = ["turbo", "run", "test:built", "--output-logs=errors-only", ...filters];
  const label = `Node ${version}`;
  count(`${packages.join(", ")} on ${label}`, await run("npx", args, { cwd: root, env, label }));
}

const args = ["start", "--", "--limit", "1000"];
const env = onNode(newest.bin);
count(
  `npm ${args.join(" ")} on Node ${newest.version}`,
  await run("npm", args, { cwd: root, env, label: "npm start" }),
);

console.log(totalLine(total));
process.exitCode = total.failed === 0 ? 0 : 1;
