import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleProcess } from "./bundle.js";

const directory = mkdtempSync(join(tmpdir(), "halfstep-full-"));
let program: string;
beforeAll(async () => {
  program = await bundleProcess("full-disk-process");
}, 600_000);
afterAll(() => rmSync(directory, { recursive: true }));

/** A disk of 64 KiB, in a name space of its own; where that is not allowed, files of at most 64 KiB. */
const canMount =
  spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "none", directory]).status === 0;
const [little, reason] = canMount
  ? [
      [
        "unshare",
        "-rm",
        "bash",
        "-c",
        `mount -t tmpfs -o size=64k none ${directory} && exec "$0" "$@"`,
      ],
      "(no space left on the disk): make room, or choose a place on another disk",
    ]
  : [
      ["bash", "-c", 'ulimit -f 64; exec "$0" "$@"'],
      "(the file grows beyond what the system allows)",
    ];

describe("a disk that is full", () => {
  it.each([
    ["file", "good"],
    ["new", "model/weights"],
    ["there", "weights"],
  ])("keeps what was on it, and says so in a line: %s", (what, name) => {
    const [command = "", ...args] = [...little, process.execPath, program, what, directory];
    const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
    expect(stderr).toContain(`error: ${join(directory, name)} cannot be written ${reason}`);
    expect(stderr.trim()).not.toContain("\n");
    expect({ status, left: JSON.parse(stdout) }).toEqual({ status: 4, left: { good: "good" } });
  });

  it.each(["stdout", "stderr"])("is said in a line, or by the exit code: %s", (stream) => {
    const redirected = `exec "$0" "$@" ${stream === "stdout" ? "" : "2"}> /dev/full`;
    const args = ["-c", redirected, process.execPath, program, stream, directory];
    const { status, stdout, stderr } = spawnSync("bash", args, { encoding: "utf8" });
    expect(stdout + stderr).toBe(
      stream === "stdout"
        ? "error: stdout cannot be written (no space left on the disk): make room, or choose a place on another disk\n"
        : "",
    );
    expect(status).toBe(4);
  });
});
