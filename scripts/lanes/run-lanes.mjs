import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gpuEnvironment } from "../bootstrap/adapter.mjs";
import { lastLines, run } from "../bootstrap/run.mjs";
import { totalLine } from "../test/total.mjs";
import { laneReport } from "./report.mjs";
import { testFiles } from "./test-files.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

/**
 * Runs the tests of lanes, two folders at a time, prints one total as the last line, and sets the exit code.
 * @param {readonly import("./table.mjs").Lane[]} lanes
 * @param {readonly string[]} chosen names of lanes; empty for all but those on request
 */
export const runLanes = async (lanes, chosen) => {
  const unknown = chosen.find((name) => !lanes.some((lane) => lane.name === name));
  if (unknown !== undefined) {
    console.error(`There is no lane ${unknown}: use ${lanes.map(({ name }) => name).join(", ")}.`);
    process.exit(2);
  }
  const total = { passed: 0, failed: 0 };
  const jobs = [];
  for (const lane of lanes) {
    if (chosen.length > 0 ? !chosen.includes(lane.name) : lane.onRequest) continue;
    const driver = await lane.driver.prepare();
    if (driver.missing !== undefined) {
      console.log(`-       ${lane.name} (${lane.what}): ${driver.missing}`);
    } else if (driver.failed !== undefined) {
      console.log(`FAILED  ${lane.name} (${lane.what}): ${driver.failed}`);
      total.failed++;
    } else {
      console.log(`        ${lane.name} (${lane.what}): ${driver.version}`);
      for (const name of Object.keys(lane.tests))
        jobs.push(() => runTests(lane, driver, name, total));
    }
  }
  // A suite computes on one thread for much of its time.
  await Promise.all(
    Array.from({ length: Math.min(2, availableParallelism()) }, async () => {
      for (let job = jobs.shift(); job; job = jobs.shift()) await job();
    }),
  );
  console.log(totalLine(total));
  process.exitCode = total.failed === 0 ? 0 : 1;
};

async function runTests(lane, driver, name, total) {
  const folder = join(root, name);
  const reports = mkdtempSync(join(tmpdir(), "halfstep-lane-"));
  const { vitest = ["npx", "vitest"] } = driver;
  const [command, ...args] = [...driver.command, ...vitest, "run"];
  const { code, output, seconds } = await run(command, args, {
    cwd: folder,
    label: `${lane.name}: ${name}`,
    env: {
      ...process.env,
      ...gpuEnvironment(),
      ...driver.env,
      ...lane.env,
      HALFSTEP_LANE_TESTS: testFiles(folder, lane.tests[name]).join(),
      HALFSTEP_TEST_REPORTS: reports,
    },
  });
  const texts = readdirSync(reports).map((file) => readFileSync(join(reports, file), "utf8"));
  rmSync(reports, { recursive: true });
  const { passed, failures, differing } = laneReport(texts, lane.differing);
  // A process that ends before its report, as in a crash of the driver, is a failure.
  if (texts.length === 0 || (code !== 0 && failures.length + differing.length === 0))
    failures.push(lastLines(output, 20).join("\n"));
  if (failures.length > 0) console.log(lastLines(output, 60).join("\n"));
  for (const [, note] of output.matchAll(/note: (.*)/g)) console.log(`        ${note}`);
  for (const failure of failures) console.log(`failed: ${failure}`);
  for (const { test, why } of differing) console.log(`        differs: ${test} (${why})`);
  console.log(
    `${failures.length === 0 ? "ok     " : "FAILED "} ${lane.name}: ${name}, ${passed} passed${
      differing.length > 0 ? `, ${differing.length} differ` : ""
    } (${seconds.toFixed(1)} s)`,
  );
  total.passed += passed;
  total.failed += failures.length;
}
