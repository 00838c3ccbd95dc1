// Checks that packages and apps write files by `writeWholeFile` and `writeWholeFolder` alone (decision 84), so that a full disk destroys
// none. A line a finding.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { writersIn } from "./gates/writers.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** What writes otherwise, and why. */
const reasons = {
  "packages/trainer/src/run-folder.ts": "a log that grows",
  "packages/trainer/src/tensorboard/tensorboard-log.ts": "a log that grows",
  "packages/trainer/src/run-lock.ts": "a lock",
  "packages/trainer/src/files/whole-file.ts": "a device is written to as it is",
  "packages/trainer/src/files/file-system.ts": "opens what is renamed later",
  "packages/safetensors/src/node.ts": "opens what is renamed later",
  // To be moved to the one writer.
  "apps/images/src/export-folder.ts": "not moved yet",
  "apps/images/src/weights.ts": "not moved yet",
  "apps/language-model/src/hub.ts": "not moved yet",
  "apps/segmentation/src/pictures.ts": "not moved yet",
  "apps/super-resolution/src/images.ts": "not moved yet",
  "apps/text/src/model-folder.ts": "not moved yet",
  "apps/bench/src/lanes/torch.ts": "a temporary file",
  "apps/bench/src/pack.ts": "a temporary folder",
};

const files = execFileSync(
  "git",
  ["ls-files", ":(glob)packages/*/src/**/*.ts", ":(glob)apps/*/src/**/*.ts"],
  {
    cwd: root,
    encoding: "utf8",
  },
)
  .split("\n")
  .filter((file) => file !== "" && !/\.test(-d)?\.ts$/.test(file));
const findings = files
  .filter((file) => !(file in reasons))
  .flatMap((file) =>
    writersIn(readFileSync(join(root, file), "utf8")).map((line) => `${file}:${line}`),
  );
for (const place of findings)
  console.log(`${place} writes a file where it stands: use writeWholeFile or writeWholeFolder`);
console.log(`${files.length} sources, ${findings.length} findings`);
process.exitCode = findings.length === 0 && files.length > 0 ? 0 : 1;
