// Runs every check besides `npm test`: those of builds beside those of sources, then those that occupy two cores. Each counts as one
// passed or failed, the packed install as one for each package. `npm run gates -- lint size` runs only the named checks.
import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { lastLines } from "./bootstrap/run.mjs";
import { gatesOfBuilds, gatesOfSources, gatesOfTwoCores, root } from "./gates/table.mjs";
import { indented, readTotal, totalLine } from "./test/total.mjs";

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
const all = [...gatesOfBuilds, ...gatesOfSources, ...gatesOfTwoCores];
const unknown = chosen.find((name) => !all.some((gate) => gate.name === name));
if (unknown !== undefined) {
  console.error(`There is no gate ${unknown}: use ${all.map(({ name }) => name).join(", ")}.`);
  process.exit(2);
}

const total = { passed: 0, failed: 0 };

/** @param {import("./gates/table.mjs").Gate[]} gates */
async function runInTurn(gates) {
  for (const { name, command, counts, minutes, missing } of gates) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    if (missing !== undefined) {
      console.log(`-       ${name}: ${missing}`);
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
}

const ofSources = () => runInTurn(gatesOfSources);
const ofBuilds = runInTurn(gatesOfBuilds);
await Promise.all([ofBuilds, availableParallelism() > 1 ? ofSources() : ofBuilds.then(ofSources)]);
await runInTurn(gatesOfTwoCores);
console.log(totalLine(total));
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;
