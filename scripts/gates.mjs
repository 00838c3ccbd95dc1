// Runs every check besides `npm test` sequentially. Each counts as one passed or failed, the packed install as one for
// each package. `npm run gates -- lint size` runs only the named checks.
import { execFileSync, spawn } from "node:child_process";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { lastLines } from "./bootstrap/run.mjs";
import { indented, readTotal, totalLine } from "./test/total.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** A commit-ish that stands for main, in a clone or at the origin; undefined where there is neither. */
const mainBranch = () => {
  for (const ref of ["main", "origin/main"]) {
    try {
      execFileSync("git", ["rev-parse", "--verify", "--quiet", ref], {
        cwd: root,
        stdio: "ignore",
      });
      return ref;
    } catch {
      // The next name is tried.
    }
  }
  return undefined;
};

const turbo = (...tasks) => ["npx", "turbo", "run", ...tasks, "--output-logs=errors-only"];

const gates = [
  { name: "lint", command: ["npx", "biome", "check", ".", "--error-on-warnings"] },
  { name: "documents", command: ["node", "scripts/documents.mjs"] },
  { name: "prose", command: ["node", "scripts/prose.mjs"] },
  { name: "writers", command: ["node", "scripts/writers.mjs"] },
  { name: "boundaries", command: ["npm", "run", "--silent", "boundaries"] },
  { name: "methods", command: ["node", "scripts/methods.mjs"] },
  { name: "typecheck", command: ["npm", "run", "--silent", "typecheck"] },
  { name: "build", command: turbo("build") },
  { name: "types", command: ["node", "scripts/built-types.mjs"] },
  { name: "knip", command: ["npm", "run", "--silent", "knip"] },
  { name: "pack", command: turbo("pack:check") },
  { name: "size", command: ["npm", "run", "--silent", "size"] },
  { name: "node-versions", command: ["node", "scripts/node-versions.mjs"], counts: true },
  // Ten minutes on two quiet cores.
  { name: "lanes", command: ["node", "scripts/lanes.mjs"], counts: true, minutes: 40 },
  // Five minutes on two quiet cores.
  { name: "browser", command: ["node", "scripts/test-browser.mjs"], counts: true, minutes: 30 },
  { name: "hostile", command: ["node", "scripts/hostile.mjs"] },
  // The packed tier differs from the native one in conversions alone, which tests compare bit by bit.
  { name: "ledger", command: ["node", "scripts/ledger.mjs", "cpu", "native"] },
  // It takes one to two minutes on two busy cores.
  { name: "docs", command: ["npm", "run", "--silent", "docs"], minutes: 5 },
  { name: "docs:test", command: ["npm", "run", "--silent", "docs:test"] },
  { name: "bundles", command: ["npm", "run", "--silent", "test:bundles"] },
  { name: "parity", command: ["npm", "run", "--silent", "test:parity", "-w", "digits"] },
  { name: "changeset", command: ["npx", "changeset", "status", `--since=${mainBranch()}`] },
  { name: "packed", command: ["node", "scripts/packed-install.mjs"], counts: true },
];

const run = ([file, ...args], minutes = 15) =>
  new Promise((resolve) => {
    const child = spawn(file, args, {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
      shell: process.platform === "win32",
      timeout: minutes * 60_000,
      env: { ...process.env, CI: "true", TURBO_TELEMETRY_DISABLED: "1", DO_NOT_TRACK: "1" },
    });
    let output = "";
    const keep = (chunk) => {
      output += chunk;
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    child.on("error", (error) => keep(error.message));
    child.on("close", (code) => resolve({ code, output }));
  });

const chosen = process.argv.slice(2);
const unknown = chosen.find((name) => !gates.some((gate) => gate.name === name));
if (unknown !== undefined) {
  console.error(`There is no gate ${unknown}: use ${gates.map(({ name }) => name).join(", ")}.`);
  process.exit(2);
}

const total = { passed: 0, failed: 0 };
for (const { name, command, counts, minutes } of gates) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  if (name === "changeset" && mainBranch() === undefined) {
    console.log("-       changeset: this clone has no main to compare with");
    continue;
  }
  const started = performance.now();
  const { code, output } = await run(command, minutes);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const counted = counts ? readTotal(output) : undefined;
  total.passed += counted?.passed ?? (code === 0 ? 1 : 0);
  total.failed += counted?.failed || (code === 0 ? 0 : 1);
  if (counts || code !== 0) console.log(output.trimEnd());
  // What counts its own failures has named them.
  if (code !== 0 && !counted?.failed)
    console.log(`failed: the gate ${name}; its last lines:${indented(lastLines(output, 20))}`);
  console.log(`${code === 0 ? "ok     " : "FAILED "} ${name} (${seconds} s)`);
}
console.log(totalLine(total));
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;
