import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { describe, expect, test } from "vitest";
import { run } from "../src/cli/run.js";
import * as root from "../src/index.js";
import * as philox from "../src/philox.js";
import { formatTable, wgslTable } from "./readme-tables.js";

const folder = fileURLToPath(new URL("..", import.meta.url));
const readme = readFileSync(`${folder}README.md`, "utf8");

/** Every block of a language, with the ```text block that follows it. */
const blocks = (language: string): { code: string; output: string | undefined }[] =>
  [
    ...readme.matchAll(
      new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`\\n(?:\\n+\`\`\`text\\n(.*?)^\`\`\`)?`, "gms"),
    ),
  ].map(([, code = "", output]) => ({ code, output }));

/** Runs a TypeScript module as Node would run it after type stripping; what it imports is bundled from this package. */
async function printed(code: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: folder, loader: "ts" },
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    conditions: process.env.BUILT === "1" ? [] : ["@halfstep/source"],
  });
  const child = spawn(process.execPath, ["--input-type=module"], { stdio: "pipe" });
  child.stdin.end(outputFiles[0]?.text);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += chunk;
    });
  }
  await new Promise((resolve) => child.on("close", resolve));
  return output;
}

describe("every example prints what README says", () => {
  const examples = blocks("ts");
  test("there are examples, and exactly one is marked for the packed package", () => {
    expect(examples.length).toBeGreaterThan(6);
    expect(readme.match(/^<!-- example -->\n+```ts$/gm)).toHaveLength(1);
    expect(examples.every(({ output }) => output !== undefined)).toBe(true);
  });

  test.concurrent.each(examples)("$code", async ({ code, output }) => {
    expect(await printed(code)).toBe(output);
  });
});

test("every command prints what README says", () => {
  const commands = blocks("sh").filter(({ output }) => output !== undefined);
  expect(commands.length).toBeGreaterThan(0);
  for (const { code, output } of commands) {
    const args = code.trim().split(" ");
    expect(args.splice(0, 2)).toEqual(["npx", "@halfstep/formats"]);
    expect(run(args, { color: false }).stdout).toBe(output);
  }
});

test("the tables are those of the definitions", () => {
  expect(readme).toContain(formatTable());
  expect(readme).toContain(wgslTable());
});

test("the pictures exist", () => {
  const pictures = [...readme.matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(([, path]) => path);
  expect(pictures).toHaveLength(4);
  for (const path of pictures) expect(readFileSync(folder + path, "utf8")).toContain("<svg");
});

test("every export is in README", () => {
  const names = [...Object.keys(root), ...Object.keys(philox)];
  const missing = names.filter((name) => !new RegExp(`\\b${name}\\b`).test(readme));
  expect(missing).toEqual([]);
});
