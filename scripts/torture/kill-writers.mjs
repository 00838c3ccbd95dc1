import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gpuEnvironment } from "../bootstrap/adapter.mjs";
import { bundleApp } from "../start/bundle.mjs";

const fromRoot = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const unet = fromRoot("apps/segmentation/test/golden/unet.pth");

/** The commands that write: their programs, and their arguments for an output. */
const commands = {
  convert: {
    source: "packages/torch-files/src/cli/main.ts",
    outfile: "packages/torch-files/node_modules/.cache/convert.js",
    output: "weights.safetensors",
    args: (output) => [unet, output, "--key", "averaged.weights", "--dtype", "float32"],
  },
  predict: {
    source: "apps/segmentation/src/main.ts",
    outfile: "apps/segmentation/dist/main.js",
    output: "mask.png",
    args: (output, picture) => [
      ...["predict", picture, "-o", output, "--pretrained", unet, "--key", "averaged.weights"],
      ...["--scale", "1", "--device", "cpu"],
    ],
  },
  export: {
    source: "apps/images/src/main.ts",
    outfile: "apps/images/dist/main.js",
    output: "digits",
    args: (output) => ["export-folder", output, "--train", "10", "--test", "10"],
  },
};

/** A picture of 16×16 pixels. */
const picture = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAClklEQVR42mNgYGCQl5e3s7OLjY2tqamZPXv2rl27bt68+ePHD3FxcTMzs9DQ0JKSksmTJ2/atOnixYsM7Ozsampqrq6uKSkpzc3NixYtOnjw4IMHD/7//y8nJ2draxsTE1NdXT1r1qydO3feuHGDgY+PT1dX18fHJzs7u6ura+XKlSdOnHj+/DkbG5uqqqqLi0tycnJTU9PChQsPHDhw//59BlFRURMTk+Dg4KKiookTJ27YsOH8+fPv3r3j5eXV0dHx9vbOysrq7OxcsWLF8ePHnz17xiAjI2NtbR0VFVVZWTljxozt27dfu3bt69evIiIixsbGQUFBhYWFEyZMWL9+/blz596+fcugrKzs5OSUmJjY0NAwf/78ffv23b1798+fP9LS0lZWVpGRkRUVFdOnT9+2bdvVq1e/fPnCoKWl5enpmZGR0d7evmzZsqNHjz558oSZmVlJScnR0TEhIaG+vn7evHl79+69c+fO79+/GQwNDQMCAvLz8/v6+tauXXvmzJnXr19zcXFpamp6eHikp6e3tbUtXbr0yJEjjx8/ZmJiYrCwsAgPDy8rK5s6deqWLVsuX7786dMnQUFBAwMDf3//vLy83t7eNWvWnD59+tWrV5ycnAz29vZxcXG1tbVz5szZvXv3rVu3fv78KSEhYW5uHhYWVlpaOmXKlM2bN1+6dOnjx48CAgIMbm5uqampLS0tixcvPnTo0MOHD/HHPYOvr29OTk53d/eqVatOnjz54sUL/HHPEBISUlxcPGnSpI0bN164cOH9+/f4454hOjq6qqpq5syZO3bsuH79+rdv3/DHPUNSUlJjY+OCBQv2799/7969v3//4o97hszMzI6OjuXLlx87duzp06csLCz44x4AgTmDEE2z0pgAAAAASUVORK5CYII=",
  "base64",
);

/** The hash of each file of an output, without what a killed process has left beside it. */
function contentOf(path) {
  try {
    return { "": createHash("sha256").update(readFileSync(path)).digest("hex") };
  } catch (error) {
    if (error.code === "ENOENT") return {};
    if (error.code !== "EISDIR") throw error;
  }
  const names = readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((name) => !name.includes(".partial"));
  return Object.fromEntries(
    names.map((name) => [
      name.slice(path.length),
      createHash("sha256").update(readFileSync(name)).digest("hex"),
    ]),
  );
}

/** Runs a program to its end or its death. */
async function run(program, args, { killAt, killAfter }) {
  const child = spawn(
    process.execPath,
    ["--import", fromRoot("scripts/torture/kill-at.mjs"), program, ...args],
    {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, ...gpuEnvironment(), ...(killAt && { KILL_AT: String(killAt) }) },
    },
  );
  let stderr = "";
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  const timer = killAfter && setTimeout(() => child.kill("SIGKILL"), killAfter);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, stderr });
    });
  });
}

/**
 * Ends commands that write over an older file by SIGKILL: half of the time at a random moment, half of the time before a random operation
 * of their file system. Each file of the output must then be the old one or the new one.
 * @param {{ directory: string, kills: number, random: () => number, onKill?: (kills: number) => void }} options
 * @returns how often a file was still the old one or already the new one, and what was lost
 */
export async function killWriters({ directory, kills, random, onKill }) {
  const result = { kills: 0, old: 0, new: 0, ended: 0, lost: [] };
  const shown = join(directory, "picture.png");
  writeFileSync(shown, picture);
  const prepared = [];
  for (const [name, { source, outfile, output, args }] of Object.entries(commands)) {
    const program = fromRoot(outfile);
    await bundleApp(fromRoot(source), program);
    const path = join(directory, output);
    const started = performance.now();
    const whole = await run(program, args(path, shown), {});
    if (whole.code !== 0) throw new Error(`${name} failed: ${whole.stderr}`);
    const duration = performance.now() - started;
    prepared.push({
      name,
      program,
      path,
      duration,
      after: contentOf(path),
      args: args(path, shown),
    });
  }
  // A machine that is busy with others may let commands end before their time has come.
  for (let i = 0; result.kills < kills && i < 4 * kills; i++) {
    const { name, program, path, duration, after, args } = prepared[i % prepared.length];
    rmSync(path, { recursive: true, force: true });
    const isFolder = !("" in after);
    if (isFolder) mkdirSync(path);
    const older = Object.keys(after).slice(0, 1);
    for (const file of older) {
      const at = isFolder ? `${path}${file}` : path;
      mkdirSync(join(at, ".."), { recursive: true });
      writeFileSync(at, "old");
    }
    const before = contentOf(path);
    const isTimed = random() < 0.5;
    const ended = await run(program, args, {
      ...(isTimed
        ? { killAfter: 1 + random() * duration }
        : { killAt: 1 + Math.floor(random() * (isFolder ? 90 : 8)) }),
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
