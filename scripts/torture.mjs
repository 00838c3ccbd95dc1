// `npm run torture [-- KILLS]`: ends training by SIGKILL at random moments, 200 times, and checks the files that
// remain. Every checkpoint must be readable, and every resumed run must write the same bytes as an uninterrupted one.
// `npm run torture -- KILLS writers` does the same to commands that convert, predict and export. Each file is the old one or the new one.
// `npm run torture -- full-disk [RUNS]` runs each of these commands on a full disk, and on disks that become full while it writes.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundleApp } from "./start/bundle.mjs";
import { fillDisk } from "./torture/fill-disk.mjs";
import { killWriters } from "./torture/kill-writers.mjs";

if (process.argv[2] === "full-disk") {
  const rounds = Number(process.argv[3] ?? 5);
  if (!Number.isSafeInteger(rounds) || rounds < 1) {
    console.error("Give the runs of each command: npm run torture -- full-disk 5");
    process.exit(2);
  }
  const directory = mkdtempSync(join(tmpdir(), "halfstep-torture-"));
  const { runs, full, problems } = await fillDisk({ directory, rounds, random: Math.random });
  rmSync(directory, { recursive: true });
  for (const problem of problems) console.log(problem);
  console.log(
    `${runs} runs, ${full} of them without room: ${problems.length} left neither the old file and a line that says so, nor the new one`,
  );
  process.exit(problems.length === 0 ? 0 : 1);
}
const kills = Number(process.argv[2] ?? 200);
if (!Number.isSafeInteger(kills) || kills < 1) {
  console.error("Give the number of kills: npm run torture -- 200");
  process.exit(2);
}
const onKill = (count) => {
  if (count % 10 === 0) console.log(`${count} of ${kills} kills`);
};
if (process.argv[3] === "writers") {
  const directory = mkdtempSync(join(tmpdir(), "halfstep-torture-"));
  const result = await killWriters({ directory, kills, random: Math.random, onKill });
  console.log(
    `${result.kills} kills and ${result.ended} ends: files were the old ones ${result.old} times, the new ones ${result.new} times; ${result.lost.length} were lost`,
  );
  for (const problem of result.lost) console.log(problem);
  if (result.lost.length === 0) rmSync(directory, { recursive: true });
  process.exit(result.lost.length === 0 ? 0 : 1);
}
const trainer = fileURLToPath(new URL("../packages/trainer", import.meta.url));
const [torturer, program] = ["torture", "training-process"].map((name) =>
  join(trainer, "node_modules/.cache", `${name}.js`),
);
await bundleApp(join(trainer, "test/torture.ts"), torturer);
await bundleApp(join(trainer, "test/training-process.ts"), program);
const { torture } = await import(pathToFileURL(torturer).href);

const directory = mkdtempSync(join(tmpdir(), "halfstep-torture-"));
const started = performance.now();
const result = await torture({
  ...{ program, directory, kills, random: Math.random },
  onKill,
});
const seconds = Math.round((performance.now() - started) / 1000);
console.log(
  `${result.kills} kills in ${seconds} s, ${result.whileSaving} of them while a checkpoint was written or removed; ` +
    `${result.checkpoints} checkpoints read after them, ${result.unreadable.length} unreadable; ` +
    `${result.runs} runs came to their end, ${result.different.length} with other bytes`,
);
for (const problem of [...result.unreadable, ...result.different]) console.log(problem);
process.exitCode = result.unreadable.length + result.different.length === 0 ? 0 : 1;
// The files of a failed run are kept for inspection.
if (process.exitCode === 0) rmSync(directory, { recursive: true });
else console.log(`the runs are in ${directory}`);
