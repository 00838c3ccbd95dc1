// Runs every workspace's tests, two workspaces at a time, and prints what they cost and, as its last line, one total.
// `npm test -- --filter=@halfstep/data` passes arguments on to turbo.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { gpuEnvironment } from "./bootstrap/adapter.mjs";
import { childSeconds, cpuLine } from "./test/cpu.mjs";
import { failedTasks } from "./test/tasks.mjs";
import { indented, sumReports, totalLine } from "./test/total.mjs";

// A workspace computes on one thread for much of its time: shader compilers, references on the CPU. A third would only
// take memory.
const workspacesAtOnce = Math.min(2, availableParallelism());

const reports = mkdtempSync(join(tmpdir(), "halfstep-tests-"));
const turbo = spawn(
  "npx",
  [
    "turbo",
    "run",
    "test",
    "test:scripts",
    `--concurrency=${workspacesAtOnce}`,
    "--continue",
    ...process.argv.slice(2),
  ],
  {
    stdio: ["ignore", "pipe", "inherit"],
    shell: process.platform === "win32",
    env: {
      ...process.env,
      ...gpuEnvironment(),
      ...(process.stdout.isTTY && process.env.NO_COLOR === undefined && { FORCE_COLOR: "1" }),
      HALFSTEP_TEST_REPORTS: reports,
      TURBO_TELEMETRY_DISABLED: "1",
    },
  },
);
let output = "";
turbo.stdout.setEncoding("utf8").on("data", (text) => {
  output += text;
  process.stdout.write(text);
});
const [code] = await once(turbo, "close");
const total = sumReports(
  readdirSync(reports).map((name) => readFileSync(join(reports, name), "utf8")),
);
rmSync(reports, { recursive: true });

for (const failure of total.failures) console.log(`failed: ${failure}`);
// A workspace that dies before it can report (a driver crash, a type error in its config), or by an error outside its
// tests, has no failed test: it counts as one failure.
if (code !== 0 && total.failed === 0) {
  total.failed = 1;
  for (const { name, lines } of failedTasks(output))
    console.log(`failed: ${name}, though none of its tests did; its last lines:${indented(lines)}`);
}
if (total.passed === 0 && total.failed === 0) {
  console.log("No tests ran.");
  total.failed = 1;
}
const cost = cpuLine(childSeconds());
if (cost !== undefined) console.log(cost);
console.log(totalLine(total));
process.exitCode = total.failed === 0 ? 0 : 1;
