// Checks that packages, apps, benchmarks and scripts write files only by `writeWholeFile` and `writeWholeFolder`, or by `writeWhole` where
// those cannot be imported (decision 84). So a full disk destroys no file. Prints one line for each finding.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { writersIn } from "./gates/writers.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The exceptions, with their reasons. */
const reasons = {
  "packages/trainer/src/run-folder.ts": "a log that grows",
  "packages/trainer/src/tensorboard/tensorboard-log.ts": "a log that grows",
  "packages/trainer/src/run-lock.ts": "a lock",
  "packages/trainer/src/files/whole-file.ts": "a device is written to as it is",
  "packages/trainer/src/files/file-system.ts": "opens what is renamed later",
  "packages/safetensors/src/node.ts": "opens what is renamed later",
  "packages/torch-files/src/convert.ts": "its writer renames",
  "tooling/vitest/hostile.js": "a test's own folder",
  "apps/bench/src/lanes/torch.ts": "a temporary file",
  "apps/bench/src/pack.ts": "a temporary folder",
  "scripts/whole-file.mjs": "is the writer",
  "scripts/study/run-study.mjs": "a log that grows",
  "scripts/built-types.mjs": "a temporary folder",
  "scripts/packed-install.mjs": "a temporary folder",
  "scripts/torture/kill-writers.mjs": "a temporary folder",
  "scripts/torture/writing-commands.mjs": "a temporary folder",
  "scripts/hostile.mjs": "a temporary folder",
};

const folders = ["packages/*/src", "packages/*/bench", "apps/*/src", "scripts", "tooling"];
const patterns = folders.flatMap((folder) =>
  ["ts", "js", "mjs"].map((type) => `:(glob)${folder}/**/*.${type}`),
);
const files = execFileSync("git", ["ls-files", ...patterns], { cwd: root, encoding: "utf8" })
  .split("\n")
  .filter((file) => file !== "" && !/\.test(-d)?\.m?[jt]s$/.test(file));
const places = new Map(
  files.map((file) => [file, writersIn(readFileSync(join(root, file), "utf8"))]),
);
const findings = [...places].flatMap(([file, lines]) =>
  file in reasons
    ? []
    : lines.map(
        (line) =>
          `${file}:${line} writes a file where it stands: use writeWholeFile, writeWholeFolder or scripts/whole-file.mjs`,
      ),
);
for (const [file, reason] of Object.entries(reasons))
  if (!places.get(file)?.length)
    findings.push(`scripts/writers.mjs excuses ${file} (${reason}), which writes nothing`);
for (const finding of findings) console.log(finding);
console.log(`${files.length} sources, ${findings.length} findings`);
process.exitCode = findings.length === 0 && files.length > 0 ? 0 : 1;
