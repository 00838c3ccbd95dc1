import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { gpuEnvironment } from "../bootstrap/adapter.mjs";
import { contentOf } from "./content-of.mjs";
import { runProgram } from "./run-program.mjs";
import { writingCommands } from "./writing-commands.mjs";

/** An older output on a disk that is then filled but for FREE bytes; afterwards what is there, by its hash and name. */
const script = `
mount -t tmpfs -o size=8m none "$DISK" && mkdir -p "$(dirname "$OLD")" && printf old > "$OLD" || exit 99
cat /dev/zero > "$DISK/filler" 2> /dev/null
truncate -s "-$FREE" "$DISK/filler"
"$0" "$@"
code=$?
find "$DISK" -type f ! -name filler -exec sha256sum {} + >&3
exit $code`;

const oldHash = createHash("sha256").update("old").digest("hex");

/** What is said on a full disk. */
const fullDisk = /^(error|halfstep-convert): .*no space left on the disk\): make room, or choose/;

/** Disks are given out in pages. */
const page = 4096;

/**
 * Runs the commands that write over an older output on a disk that is full, and on disks that become full at a random moment of writing.
 * Each must end with exit code 4 and a line that names the file and the remedy, and leave the older output and nothing else. Or, where the
 * room was enough, end with the new output. Mounting needs namespaces of users, or root.
 *
 * @param {{ directory: string, rounds: number, random: () => number }} options an empty folder, and how often each command is run
 * @returns {Promise<{ runs: number, full: number, problems: string[] }>} the number of all, and of those that had no room
 */
export async function fillDisk({ directory, rounds, random }) {
  const commands = await writingCommands(directory);
  const disk = join(directory, "disk");
  mkdirSync(disk);
  const result = { runs: 0, full: 0, problems: [] };
  for (const { name, program, output, isNew, argsFor } of commands) {
    const path = join(directory, output);
    const { code, stderr } = await runProgram(program, argsFor(path));
    if (code !== 0) throw new Error(`${name} failed: ${stderr}`);
    const content = contentOf(path);
    const pages = pagesOf(path);
    rmSync(path, { recursive: true });
    const at = join(disk, output);
    const [first = ""] = Object.keys(content);
    const older = isNew ? join(disk, "beside") : `${at}${first}`;
    const old = new Map([[older, oldHash]]);
    const written = Object.entries(content).map(([file, hash]) => [`${at}${file}`, hash]);
    const whole = new Map([...(isNew ? old : []), ...written]);
    for (let round = 0; round < rounds; round++) {
      const free = round === 0 ? 0 : page * Math.floor(random() * (pages + 2));
      const ended = spawnSync(
        "unshare",
        ["-rm", "bash", "-c", script, process.execPath, program, ...argsFor(at)],
        {
          encoding: "utf8",
          stdio: ["ignore", "ignore", "pipe", "pipe"],
          env: {
            ...process.env,
            ...gpuEnvironment(),
            ...{ DISK: disk, OLD: older, FREE: `${free}` },
          },
        },
      );
      const said = ended.stderr.trimEnd().split("\n").at(-1) ?? "";
      const left = filesIn(ended.output[3]);
      const isFull = ended.status === 4 && fullDisk.test(said) && said.includes(at);
      result.runs++;
      if (isFull) result.full++;
      const isWhole = isFull ? isSame(left, old) : ended.status === 0 && isSame(left, whole);
      if (!isWhole)
        result.problems.push(
          `${name} with ${free} bytes: exit code ${ended.status}, said ${said}, left ${[...left.keys()].join(", ")}`,
        );
    }
  }
  return result;
}

/** The pages that an output takes, with its folders. */
function pagesOf(path) {
  const stat = statSync(path);
  if (stat.isFile()) return Math.ceil(stat.size / page);
  const inside = readdirSync(path).map((name) => pagesOf(join(path, name)));
  return inside.reduce((sum, pages) => sum + pages, 0);
}

/** The files that `sha256sum` lists, with their hashes. */
const filesIn = (lines) =>
  new Map([...lines.matchAll(/^([0-9a-f]{64}) [ *](.*)$/gm)].map(([, hash, file]) => [file, hash]));

const isSame = (files, others) =>
  files.size === others.size && [...files].every(([file, hash]) => others.get(file) === hash);
