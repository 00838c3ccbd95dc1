import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, test } from "vitest";
import * as root from "../src/index.js";
import * as node from "../src/node.js";

const folder = fileURLToPath(new URL("..", import.meta.url));
const readme = readFileSync(join(folder, "README.md"), "utf8");
const examples = [...readme.matchAll(/^```ts\n(.*?)^```\n\n```text\n(.*?)^```/gms)].map(
  ([, code = "", output = ""]) => ({ code, output }),
);

/** What a module prints that imports this package, run in an empty folder. */
async function printed(code: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: folder, loader: "ts" },
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    conditions: process.env.BUILT === "1" ? [] : ["@halfstep/source"],
  });
  const cwd = mkdtempSync(join(tmpdir(), "halfstep-readme-"));
  const child = spawn(process.execPath, ["--input-type=module"], { cwd, stdio: "pipe" });
  child.stdin.end(outputFiles[0]?.text);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      output += chunk;
    });
  await new Promise((resolve) => child.on("close", resolve));
  rmSync(cwd, { recursive: true });
  return output;
}

test("there are two examples, each with what it prints", () => {
  expect(examples).toHaveLength(2);
  expect(readme.match(/^```ts$/gm)).toHaveLength(2);
});

test.concurrent.each(examples)("an example prints what README says", async ({ code, output }) => {
  expect(await printed(code)).toBe(output);
});

test("every export is in README", () => {
  const names = [...Object.keys(root), ...Object.keys(node)];
  expect(names.filter((name) => !readme.includes(`\`${name}`))).toEqual([]);
});
