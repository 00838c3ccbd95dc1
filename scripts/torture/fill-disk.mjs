import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gpuEnvironment } from "../bootstrap/adapter.mjs";
import { contentOf } from "./content-of.mjs";
import { runProgram } from "./run-program.mjs";
import { writingCommands } from "./writing-commands.mjs";

/** An older output on a disk that is then filled; afterwards what is there, by its length and name. */
const script = `
mount -t tmpfs -o size=1m none "$DISK" && mkdir -p "$(dirname "$OLD")" && printf old > "$OLD" || exit 99
cat /dev/zero > "$DISK/filler" 2> /dev/null
"$0" "$@"
code=$?
find "$DISK" -type f ! -name filler -printf '%s %p\\n' >&3
exit $code`;

/**
 * Runs the commands that write over an older output on a disk that is full. Each must end with exit code 4 and a line that names the file
 * and the remedy, and leave the older output as it was. Mounting needs namespaces of users, or root.
 * @param {string} directory an empty folder
 * @returns {Promise<{ commands: number, problems: string[] }>}
 */
export async function fillDisk(directory) {
  const commands = await writingCommands(directory);
  const disk = join(directory, "disk");
  mkdirSync(disk);
  const problems = [];
  for (const { name, program, output, argsFor } of commands) {
    const path = join(directory, output);
    const { code, stderr } = await runProgram(program, argsFor(path));
    if (code !== 0) throw new Error(`${name} failed: ${stderr}`);
    const [first = ""] = Object.keys(contentOf(path));
    rmSync(path, { recursive: true });
    const old = join(disk, `${output}${first}`);
    const ended = spawnSync(
      "unshare",
      ["-rm", "bash", "-c", script, process.execPath, program, ...argsFor(join(disk, output))],
      {
        encoding: "utf8",
        stdio: ["ignore", "ignore", "pipe", "pipe"],
        env: { ...process.env, ...gpuEnvironment(), DISK: disk, OLD: old },
      },
    );
    const said = ended.stderr.trimEnd().split("\n").at(-1) ?? "";
    const left = ended.output[3];
    if (
      ended.status !== 4 ||
      !/^(error|halfstep-convert): .*no space left on the disk\): make room, or choose/.test(
        said,
      ) ||
      !said.includes(join(disk, output)) ||
      left !== `3 ${old}\n`
    )
      problems.push(`${name}: exit code ${ended.status}, said ${said}, left ${left}`);
  }
  return { commands: commands.length, problems };
}
