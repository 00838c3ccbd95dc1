import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { gpuEnvironment } from "../bootstrap/adapter.mjs";
import { publicPackages } from "../gates/packages.mjs";
import { readmeExamples } from "../gates/readme-example.mjs";
import { bundleApp } from "../start/bundle.mjs";
import { moduleOf, outputsOf, pagePrograms } from "./page-program.mjs";
import { english } from "./vitepress/navigation.mjs";

// Every block of TypeScript in the guides compiles, runs, and prints what the page says; so do blocks of READMEs for which something is given.
// The examples of READMEs run in the gate `packed`, and compile here.

const root = fileURLToPath(new URL("../../", import.meta.url));
// Below the root, so that the packages are found.
const folder = join(root, "node_modules", ".cache", "pages");

const programsOf = (file, name) =>
  pagePrograms(readFileSync(join(root, file), "utf8")).map((program, i) => ({
    name: `${name}-${i + 1}`,
    ...program,
  }));

const guides = readdirSync(join(root, "docs", "guide"))
  .filter((file) => file.endsWith(".md"))
  .flatMap((file) => programsOf(`docs/guide/${file}`, file.replace(".md", "")));

const readmes = publicPackages(root).map(({ directory }) => ({
  name: basename(directory),
  programs: programsOf(join("packages", basename(directory), "README.md"), basename(directory)),
}));

const programs = [
  ...guides,
  ...readmes.flatMap(({ programs }) => programs.filter(({ given }) => given !== undefined)),
];

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const program of programs)
  writeFileSync(join(folder, `${program.name}.ts`), moduleOf(program));
const compilerOptions = { types: ["node"], isolatedDeclarations: false, declaration: false };
writeFileSync(
  join(folder, "tsconfig.json"),
  JSON.stringify({ extends: "@halfstep/tsconfig/base.json", compilerOptions, include: ["*.ts"] }),
);

// As programs of others are compiled, whose settings need not be those of this repository.
const examples = join(folder, "examples");
mkdirSync(examples);
for (const { directory } of publicPackages(root))
  for (const [i, { code }] of readmeExamples(
    readFileSync(join(root, "packages", basename(directory), "README.md"), "utf8"),
  ).entries())
    writeFileSync(join(examples, `${basename(directory)}-${i + 1}.ts`), code);
writeFileSync(
  join(examples, "tsconfig.json"),
  JSON.stringify({
    extends: "@halfstep/tsconfig/base.json",
    compilerOptions: { ...compilerOptions, noUncheckedIndexedAccess: false },
    include: ["*.ts"],
  }),
);

test.each(programs)("$name prints what the page says", async ({ name, blocks }) => {
  const bundle = join(folder, `${name}.mjs`);
  await bundleApp(join(folder, `${name}.ts`), bundle);
  const { stdout, stderr, status } = spawnSync(process.execPath, ["--enable-source-maps", bundle], {
    cwd: mkdtempSync(join(folder, `${name}-`)),
    encoding: "utf8",
    env: { ...process.env, ...gpuEnvironment() },
  });
  expect(status, stderr).toBe(0);
  expect(outputsOf(stdout)).toEqual(blocks.map(({ output }) => output));
});

test("every guide is listed in docs/README.md and in the navigation", () => {
  const files = readdirSync(join(root, "docs", "guide")).filter((file) => file.endsWith(".md"));
  const index = readFileSync(join(root, "docs", "README.md"), "utf8");
  const items = JSON.stringify(english.sidebar);
  const isListed = (file) => index.includes(`](guide/${file})`) && items.includes(`/guide/${file}`);
  expect(files.filter((file) => !isListed(file))).toEqual([]);
});

// Tests of these two packages run all blocks of their READMEs.
const tested = ["formats", "safetensors"];

test.each(readmes.filter(({ name }) => !tested.includes(name)))(
  "every block of the README of $name runs, or says that it is a sketch",
  ({ programs }) => {
    const left = programs.flatMap(({ mark, blocks }) =>
      mark === undefined ? blocks : mark === "given" ? [] : blocks.slice(1),
    );
    expect(left).toEqual([]);
  },
);

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

test.each([folder, examples])("all programs in %s compile", (project) => {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const { stdout } = spawnSync(process.execPath, [tsc, "--project", project], { encoding: "utf8" });
  expect(stdout).toBe("");
});
