// Packs every public package, installs each with its dependencies in an empty project, and runs the examples of its
// README there. Needs a build. Prints one line for each package, and one total as the last line.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";
import { gpuEnvironment } from "./bootstrap/adapter.mjs";
import { closure, publicPackages } from "./gates/packages.mjs";
import { importedPackages, readmeExamples } from "./gates/readme-example.mjs";
import { totalLine } from "./test/total.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const work = mkdtempSync(join(tmpdir(), "halfstep-packed-"));
const packages = publicPackages(root);
const only = process.argv.slice(2);

/** Runs a command; rejects with its output when it fails or takes too long. */
const command = (file, args, cwd, timeout) =>
  new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd,
      timeout,
      stdio: ["ignore", "pipe", "pipe"],
      shell: process.platform === "win32",
      env: { ...process.env, ...gpuEnvironment() },
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
    });
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) resolve(stdout);
      else reject(new Error(`${file} ${args[0]} ended with ${signal ?? code}\n${stdout}${stderr}`));
    });
  });

const packed = JSON.parse(
  await command(
    "npm",
    ["pack", "--json", "--pack-destination", work, ...packages.flatMap(({ name }) => ["-w", name])],
    root,
    120_000,
  ),
);
const unlicensed = packed.filter(({ files }) => !files.some(({ path }) => path === "LICENSE"));
if (unlicensed.length > 0) {
  console.log(
    `FAILED  no LICENSE in ${unlicensed.map(({ name }) => name).join(", ")}: copy the one at the root beside their package.json`,
  );
}
const tarballs = new Map(packed.map(({ name, filename }) => [name, join(work, filename)]));

/** Optional peers are installed where an example needs them. */
const optionalPeers = [
  { peer: "webgpu", importedBy: /"(webgpu|@halfstep\/device\/(node|testing))"/ },
  { peer: "commander", importedBy: /"(commander|@halfstep\/trainer\/cli)"/ },
];

const check = async ({ name, directory }) => {
  const examples = readmeExamples(readFileSync(join(directory, "README.md"), "utf8"));
  if (examples.length === 0) throw new Error("README.md has no block marked <!-- example -->");
  const imported = importedPackages(examples.map(({ code }) => code).join("\n"));
  if (!imported.includes(name)) throw new Error(`README.md's examples do not import ${name}`);
  const internal = closure([name, ...imported], packages);
  const peers = Object.assign(
    {},
    ...internal.map((each) => packages.find((pkg) => pkg.name === each).manifest.peerDependencies),
  );
  const needed = optionalPeers.filter(({ importedBy }) =>
    examples.some(({ code }) => importedBy.test(code)),
  );
  const project = join(work, name.replace("/", "-"));
  mkdirSync(project);
  writeFileSync(
    join(project, "package.json"),
    JSON.stringify({
      private: true,
      type: "module",
      dependencies: {
        ...Object.fromEntries(internal.map((each) => [each, `file:${tarballs.get(each)}`])),
        ...Object.fromEntries(needed.map(({ peer }) => [peer, peers[peer]])),
      },
    }),
  );
  await command(
    "npm",
    ["install", "--prefer-offline", "--no-audit", "--no-fund"],
    project,
    300_000,
  );
  for (const [i, example] of examples.entries()) await run(project, `example${i + 1}.js`, example);
  return examples.length;
};

/** Runs an example, and compares its output with the README. */
const run = async (project, file, { code: source, output }) => {
  const { code } = await transform(source, { loader: "ts", format: "esm", target: "node20" });
  writeFileSync(join(project, file), code);
  const printed = await command(process.execPath, [file], project, 120_000);
  if (output !== undefined && printed.trim() !== output.trim()) {
    throw new Error(`${file} printed\n${printed}\nand README.md says\n${output}`);
  }
  if (printed.trim() === "") throw new Error(`${file} printed nothing`);
};

const total = { passed: 0, failed: 0 };
const queue = packages.filter(({ name }) => only.length === 0 || only.includes(name));
const worker = async () => {
  for (let pkg = queue.shift(); pkg !== undefined; pkg = queue.shift()) {
    const started = performance.now();
    const seconds = () => ((performance.now() - started) / 1000).toFixed(1);
    try {
      const examples = await check(pkg);
      total.passed += 1;
      console.log(`ok      packed ${pkg.name}, examples: ${examples} (${seconds()} s)`);
    } catch (error) {
      total.failed += 1;
      console.log(`FAILED  packed ${pkg.name} (${seconds()} s)\n${error.message}`);
    }
  }
};
await Promise.all([worker(), worker()]);
rmSync(work, { recursive: true });
total.failed += unlicensed.length;
if (total.passed + total.failed === 0) total.failed = 1;
console.log(totalLine(total));
process.exitCode = total.failed === 0 ? 0 : 1;
