import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { gpuEnvironment } from "../bootstrap/adapter.mjs";
import { bundleApp } from "../start/bundle.mjs";
import { moduleOf, outputsOf, pagePrograms } from "./page-program.mjs";

// Every block of TypeScript in the guide compiles, runs, and prints what the page says.

const root = fileURLToPath(new URL("../../", import.meta.url));
const guide = join(root, "docs", "guide");
// Below the root, so that the packages are found.
const folder = join(root, "node_modules", ".cache", "pages");

const programs = readdirSync(guide)
  .filter((file) => file.endsWith(".md"))
  .flatMap((file) =>
    pagePrograms(readFileSync(join(guide, file), "utf8")).map((blocks, i) => ({
      name: `${file.replace(".md", "")}-${i + 1}`,
      blocks,
    })),
  );

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const { name, blocks } of programs)
  writeFileSync(join(folder, `${name}.ts`), moduleOf(blocks));
const compilerOptions = { types: ["node"], isolatedDeclarations: false, declaration: false };
writeFileSync(
  join(folder, "tsconfig.json"),
  JSON.stringify({ extends: "@halfstep/tsconfig/base.json", compilerOptions, include: ["*.ts"] }),
);

test.each(programs)("$name prints what the page says", async ({ name, blocks }) => {
  const bundle = join(folder, `${name}.mjs`);
  await bundleApp(join(folder, `${name}.ts`), bundle);
  const { stdout, stderr, status } = spawnSync(process.execPath, ["--enable-source-maps", bundle], {
    encoding: "utf8",
    env: { ...process.env, ...gpuEnvironment() },
  });
  expect(status, stderr).toBe(0);
  expect(outputsOf(stdout)).toEqual(blocks.map(({ output }) => output));
});

test.each([
  ["docs/guide/tutorial.md", "docs/zh/tutorial.md"],
  ["README.md", "docs/zh/README.md"],
])("%s in Chinese has the same blocks and figures", (english, chinese) => {
  const [original, translated] = [english, chinese].map((file) =>
    readFileSync(join(root, file), "utf8"),
  );
  const blocksOf = (text) => text.match(/^```.*?^```$/gms);
  // The words of a row may come in another order.
  const figuresOf = (text) =>
    text.match(/^\|.*\|$/gm)?.map((row) => row.match(/\d+(?:[.,]\d+)*/g)?.sort());
  expect(blocksOf(translated)).toEqual(blocksOf(original));
  expect(figuresOf(translated)).toEqual(figuresOf(original));
});

test("all programs compile", () => {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const { stdout } = spawnSync(process.execPath, [tsc, "--project", folder], { encoding: "utf8" });
  expect(stdout).toBe("");
});
