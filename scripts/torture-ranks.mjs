// `npm run torture:ranks [-- KILLS]`: ends ranks of a job by SIGKILL at random moments, 20 times. The job must end by itself within five
// seconds, the launcher and the survivors must say what happened, and training must go on with a rank less and with as many.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { prepareMpi } from "./bootstrap/mpi.mjs";
import { bundleApp } from "./start/bundle.mjs";

const kills = Number(process.argv[2] ?? 20);
if (!Number.isSafeInteger(kills) || kills < 1) {
  console.error("Give the number of kills: npm run torture:ranks -- 20");
  process.exit(2);
}
const mpi = await prepareMpi("openmpi", console.error);
if (mpi.missing !== undefined) {
  console.error(mpi.missing);
  process.exit(3);
}
const trainer = fileURLToPath(new URL("../packages/trainer", import.meta.url));
const [killer, program] = ["kill-ranks", "training-rank"].map((name) =>
  join(trainer, "node_modules/.cache/ranks", `${name}.js`),
);
await bundleApp(join(trainer, "test/ranks/kill-ranks.ts"), killer);
await bundleApp(join(trainer, "test/ranks/training-rank.ts"), program);
const { killRanks } = await import(pathToFileURL(killer).href);

const directory = mkdtempSync(join(tmpdir(), "halfstep-torture-ranks-"));
const done = await killRanks({
  ...{ program, directory, kills, ranks: 2, seed: 21, env: mpi.env },
  launch: (ranks) => [mpi.launcher, "--oversubscribe", "--bind-to", "none", "-n", `${ranks}`],
  onKill: ({ killed, seconds, resumedAt, survivors }) =>
    console.log(
      `rank ${killed}: the job ended after ${seconds.toFixed(1)} s, and went on from step ${resumedAt}; ${survivors.join("; ")}`,
    ),
});
const count = (holds) => done.filter(holds).length;
const seconds = done.map((kill) => kill.seconds).sort((a, b) => a - b);
const figures = [
  [count(({ code }) => code !== 0), "jobs ended with another status than 0"],
  [
    count((kill) => kill.seconds <= 5),
    `within five seconds, the slowest after ${seconds.at(-1).toFixed(1)}`,
  ],
  [count(({ isNamed }) => isNamed), "launchers named the rank"],
  [count(({ survivors }) => survivors.length > 0), "survivors said what they were in"],
  [count(({ isWhole }) => isWhole), "jobs of a rank less saw each sample of each epoch once"],
  [count(({ isEqual }) => isEqual), "jobs of as many ranks wrote the bytes of an unbroken run"],
];
for (const [holding, what] of figures) console.log(`${holding} of ${done.length}: ${what}`);
process.exitCode = figures.every(([holding]) => holding === done.length) ? 0 : 1;
// The files of a failed run are kept for inspection.
if (process.exitCode === 0) rmSync(directory, { recursive: true });
else console.log(`the runs are in ${directory}`);
