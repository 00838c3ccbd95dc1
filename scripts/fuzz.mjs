// `npm run fuzz [-- --minutes N] [--seed S] [PACKAGE…]`: runs the property tests repeatedly, each time from another seed, until the time is
// over (default 10 minutes) or one fails. `npm test` starts from one committed seed. A failure names the seed to repeat it with.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gpuEnvironment } from "./bootstrap/adapter.mjs";

const usage = "npm run fuzz [-- --minutes N] [--seed S] [PACKAGE…]";
const root = fileURLToPath(new URL("..", import.meta.url));

const fail = (message) => {
  console.error(`${message}: ${usage}`);
  process.exit(2);
};
const numberOf = (flag, text, smallest) => {
  const value = Number(text);
  if (!Number.isFinite(value) || value < smallest)
    fail(`--${flag} ${text} is no number from ${smallest} on`);
  return value;
};

let given;
try {
  const options = { minutes: { type: "string", default: "10" }, seed: { type: "string" } };
  given = parseArgs({ options, allowPositionals: true });
} catch (error) {
  fail(error.message);
}
const { values, positionals } = given;
const end = Date.now() + numberOf("minutes", values.minutes, 0) * 60_000;

/** The test files of a package that use fast-check. */
const propertyFiles = (name) => {
  const folder = join(root, "packages", name);
  return ["src", "test"].flatMap((part) => {
    let files = [];
    try {
      files = readdirSync(join(folder, part), { recursive: true, encoding: "utf8" });
    } catch {
      // A package without this folder.
    }
    return files
      .map((file) => join(part, file))
      .filter((file) => file.endsWith(".test.ts"))
      .filter((file) => readFileSync(join(folder, file), "utf8").includes('"fast-check"'));
  });
};
const packages = readdirSync(join(root, "packages"));
const unknown = positionals.find((name) => !packages.includes(name));
if (unknown !== undefined)
  fail(`there is no package ${unknown} (there are ${packages.join(", ")})`);
const suites = (positionals.length > 0 ? positionals : packages)
  .map((name) => ({ name, files: propertyFiles(name) }))
  .filter(({ files }) => files.length > 0);
if (suites.length === 0) fail("no property tests there");

let rounds = 0;
do {
  const seed =
    values.seed === undefined
      ? Math.floor(Math.random() * 2 ** 31)
      : numberOf("seed", values.seed, 0);
  for (const { name, files } of suites) {
    console.log(`seed ${seed}: ${name} (${files.length} files)`);
    const { status } = spawnSync("npx", ["vitest", "run", ...files], {
      cwd: join(root, "packages", name),
      stdio: ["ignore", "inherit", "inherit"],
      shell: process.platform === "win32",
      env: { ...process.env, ...gpuEnvironment(), HALFSTEP_PROPERTY_SEED: String(seed) },
    });
    if (status !== 0) {
      console.error(
        `${name} failed: repeat it with npm run fuzz -- --minutes 0 --seed ${seed} ${name}`,
      );
      process.exit(1);
    }
  }
  rounds++;
} while (Date.now() < end && values.seed === undefined);
console.log(`${rounds} rounds from ${rounds} seeds, no failure`);
