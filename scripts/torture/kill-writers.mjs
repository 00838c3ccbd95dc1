import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { contentOf } from "./content-of.mjs";
import { runProgram } from "./run-program.mjs";
import { writingCommands } from "./writing-commands.mjs";

const killAtModule = fileURLToPath(new URL("kill-at.mjs", import.meta.url));

/** Runs a program whose operations of the file system are counted, and ends it before one of them, or after a time. */
const runKilled = (program, args, { killAt = 0, killAfter }) =>
  runProgram(program, args, {
    ...{ nodeArgs: ["--import", killAtModule], environment: { KILL_AT: String(killAt) } },
    ...(killAfter && { killAfter }),
  });

/**
 * Ends commands that write over an older file by SIGKILL: half of the time at a random moment, half of the time before a random operation
 * of their file system. Each file of the output must then be the old one or the new one.
 * @param {{ directory: string, kills: number, random: () => number, onKill?: (kills: number) => void }} options
 * @returns how often a file was still the old one or already the new one, and what was lost
 */
export async function killWriters({ directory, kills, random, onKill }) {
  const result = { kills: 0, old: 0, new: 0, ended: 0, lost: [] };
  const prepared = [];
  for (const { name, program, output, isNew, argsFor } of await writingCommands(directory)) {
    const path = join(directory, output);
    const args = argsFor(path);
    const started = performance.now();
    const whole = await runKilled(program, args, {});
    if (whole.code !== 0) throw new Error(`${name} failed: ${whole.stderr}`);
    const duration = performance.now() - started;
    const operations = Number(/^(\d+) operations$/m.exec(whole.stderr)?.[1]);
    const after = contentOf(path);
    prepared.push({ name, program, path, isNew, args, duration, operations, after });
  }
  // A machine that is busy with others may let commands end before their time has come.
  for (let i = 0; result.kills < kills && i < 4 * kills; i++) {
    const { name, program, path, isNew, args, duration, operations, after } =
      prepared[i % prepared.length];
    rmSync(path, { recursive: true, force: true });
    const isFolder = !("" in after);
    if (isFolder) mkdirSync(path);
    const older = Object.keys(after).slice(0, isNew ? 0 : 1);
    for (const file of older) {
      const at = isFolder ? `${path}${file}` : path;
      mkdirSync(join(at, ".."), { recursive: true });
      writeFileSync(at, "old");
    }
    const before = contentOf(path);
    const isTimed = random() < 0.5;
    const ended = await runKilled(program, args, {
      ...(isTimed
        ? { killAfter: 1 + random() * duration }
        : { killAt: 1 + Math.floor(random() * operations) }),
    });
    if (ended.signal !== "SIGKILL") {
      if (ended.code !== 0) throw new Error(`${name} failed: ${ended.stderr}`);
      result.ended++;
    } else onKill?.(++result.kills);
    const left = contentOf(path);
    for (const [file, hash] of Object.entries({ ...before, ...left })) {
      if (left[file] === after[file]) result.new++;
      else if (left[file] === before[file]) result.old++;
      else result.lost.push(`${name}${file}: ${left[file] ?? "missing"} instead of ${hash}`);
    }
  }
  return result;
}
