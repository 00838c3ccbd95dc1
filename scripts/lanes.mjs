// `npm run lanes`: runs tests on drivers that may be missing on this machine. At present there is one: a newer software driver with
// hardware matrices (tensor cores). It runs the test files `*.lane.test.ts`, and each of their tests counts. If the driver is not
// available, a line says so. The last line is one total.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gpuEnvironment } from "./bootstrap/adapter.mjs";
import { lastLines, run } from "./bootstrap/run.mjs";
import { totalLine } from "./test/total.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const newerMesa = join(root, "scripts", "lanes", "newer-mesa.sh");
/** The exit code of newer-mesa.sh on machines where it cannot run. */
const cannotRun = 69;

/** Packages with tests for the driver. */
const packages = ["kernels", "trainer"];

const total = { passed: 0, failed: 0 };
const ready = await run(newerMesa, ["node", "--version"], { label: "newer Mesa" });
if (ready.code === cannotRun) {
  console.log(`-       matrices: ${lastLines(ready.output, 1)[0]}`);
} else {
  console.log(lastLines(ready.output, 2).join("\n"));
  for (const name of ready.code === 0 ? packages : []) await testOn(newerMesa, name);
  if (ready.code !== 0) total.failed++;
}
console.log(totalLine(total));
process.exitCode = total.failed === 0 ? 0 : 1;

async function testOn(driver, name) {
  const reports = mkdtempSync(join(tmpdir(), "halfstep-lane-"));
  const { code, output, seconds } = await run(driver, ["npx", "vitest", "run"], {
    cwd: join(root, "packages", name),
    label: `matrices: ${name}`,
    env: {
      ...process.env,
      ...gpuEnvironment(),
      HALFSTEP_LANE: "1",
      HALFSTEP_TEST_REPORTS: reports,
    },
  });
  const counts = { passed: 0, failed: 0 };
  for (const file of readdirSync(reports)) {
    const report = JSON.parse(readFileSync(join(reports, file), "utf8"));
    counts.passed += report.numPassedTests;
    counts.failed += report.numFailedTests;
  }
  rmSync(reports, { recursive: true });
  if (code !== 0 && counts.failed === 0) counts.failed = 1;
  if (counts.failed > 0) console.log(lastLines(output, 60).join("\n"));
  console.log(
    `${counts.failed === 0 ? "ok     " : "FAILED "} matrices: ${name}, ${counts.passed} passed (${seconds.toFixed(1)} s)`,
  );
  total.passed += counts.passed;
  total.failed += counts.failed;
}
