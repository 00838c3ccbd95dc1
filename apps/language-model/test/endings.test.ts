// How commands end where something outside of them does: a disk that is full, a terminal that is closed, a reader that has seen enough.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkpointIn } from "@halfstep/trainer/node";
import { nodeFlags } from "@halfstep/vitest/node-flags";
import { runApp } from "@halfstep/vitest/run-app";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "halfstep-endings-"));
afterAll(() => rmSync(folder, { recursive: true }));
const disk = mkdtempSync(join(folder, "disk-"));
const text = join(folder, "own.txt");
writeFileSync(text, "the cat sat on the mat and the dog sat on the cat\n".repeat(40));

const bundle = fileURLToPath(new URL("../dist/main.js", import.meta.url));
const tiny =
  "--device cpu --precision float32 --layers 1 --heads 1 --width 8 --context 8 --batch-size 2 --warm-up 0 --eval-characters 100".split(
    " ",
  );
const training = (out: string, ...flags: readonly string[]): string[] => [
  ...["train", "--text", text, ...tiny, "--out", out, ...flags],
];
const long = ["--max-steps", "100000", "--save-every", "100000", "--eval-every", "100000"];

const lastLine = (said: string): string => said.trimEnd().split("\n").at(-1) ?? "";

const model = join(folder, "model");
beforeAll(async () => {
  const ended = await runApp("language-model", training(model, "--max-steps", "2"));
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
}, 300_000);

/** Commands in a name space of their own, where they may mount disks. */
const isolated = ["unshare", "-rm", "bash", "-c"];
const canMount = spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "none", disk]).status === 0;

/** A command on a disk of so many KiB, or with files of at most as many, and the files that it leaves there. */
function onLittleDisk(kibibytes: number, ...args: readonly string[]) {
  const limit = canMount
    ? `mount -t tmpfs -o size=${kibibytes}k none ${disk}`
    : `ulimit -f ${kibibytes}`;
  const script = `${limit} && { "$0" "$@"; code=$?; find ${disk} -type f >&3; exit $code; }`;
  const [program = "", ...flags] = canMount ? isolated : ["bash", "-c"];
  const { status, stderr, output } = spawnSync(
    program,
    [...flags, script, process.execPath, ...nodeFlags, bundle, ...args],
    { encoding: "utf8", stdio: ["ignore", "pipe", "pipe", "pipe"] },
  );
  return { code: status, said: lastLine(stderr), files: output[3]?.match(/.+/g) ?? [] };
}

const isFull = /(no space left on the disk\)|the file grows beyond)/;

describe("a disk that is full", { timeout: 300_000 }, () => {
  it("ends training in a line, with nothing that only looks like a checkpoint", () => {
    const args = training(join(disk, "run"), "--max-steps", "2");
    const { code, said, files } = onLittleDisk(16, ...args);
    expect(said).toMatch(/^error: .*\/run\/checkpoints\/.* cannot be written \(/);
    expect(said).toMatch(isFull);
    expect(code).toBe(4);
    expect(files.filter((file) => /\/step-|\.partial|run\.lock/.test(file))).toEqual([]);
  });

  it("ends an export in a line, with nothing of it", () => {
    const { code, said, files } = onLittleDisk(4, "export", join(disk, "out"), "--model", model);
    expect(said).toMatch(/^error: .*\/out\/.* cannot be written \(/);
    expect(said).toMatch(isFull);
    expect({ code, files }).toEqual({ code: 4, files: [] });
  });
});

/** That a run has left a checkpoint that is whole, and no lock. */
async function expectSaved(out: string): Promise<void> {
  const { step } = await checkpointIn(out);
  expect(step).toBeGreaterThan(0);
  expect(readdirSync(out).sort()).toEqual(["checkpoints", "metrics.jsonl"]);
}

describe("a run that is under way", { timeout: 300_000 }, () => {
  it("is saved where its terminal is closed, and says how it goes on", async () => {
    const out = join(folder, "hung-up");
    let isClosed = false;
    const ended = await runApp("language-model", training(out, ...long), {
      onStderr: (stderr, kill) => {
        // A second signal would end it at once.
        if (!isClosed && /step [1-9]/.test(stderr)) kill("SIGHUP");
        isClosed ||= /step [1-9]/.test(stderr);
      },
    });
    expect(ended).toMatchObject({ code: 129, stdout: "" });
    expect(lastLine(ended.stderr)).toBe(`stopped; --resume auto --out ${out} goes on from here`);
    await expectSaved(out);
  });

  it("is saved without a word where nobody reads what it says any more", async () => {
    const out = join(folder, "unread");
    const pipe = '"$0" "$@" 2>&1 | head -1; exit $PIPESTATUS';
    const { status, stdout, stderr } = spawnSync(
      "bash",
      ["-c", pipe, process.execPath, ...nodeFlags, bundle, ...training(out, ...long)],
      { encoding: "utf8" },
    );
    expect(status).toBe(141);
    expect([stdout.trimEnd().split("\n").length, stderr]).toEqual([1, ""]);
    await expectSaved(out);
  });
});
