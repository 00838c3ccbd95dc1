// `npm run ledger [-- --update] [cpu] [native] [packed]`: trains small models for 20 steps in every way and compares the bits of their
// parameters with the committed ledger. It runs on the CPU (the default, about a minute) and on this adapter's tiers (five minutes
// each if shaders must be compiled). The flag `--update` rewrites the ledger, after a change that is meant to change bits.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundleApp } from "./start/bundle.mjs";
import { writeWhole } from "./whole-file.mjs";

const runners = ["cpu", "native", "packed"];
const named = process.argv.slice(2).filter((argument) => argument !== "--update");
const unknown = named.find((name) => !runners.includes(name));
if (unknown !== undefined) {
  console.error(
    `There is no runner ${unknown}: npm run ledger [-- --update] [${runners.join("] [")}]`,
  );
  process.exit(2);
}
const updates = process.argv.includes("--update");
const folder = fileURLToPath(new URL("../packages/trainer/test/ledger", import.meta.url));
const bundle = fileURLToPath(
  new URL("../packages/trainer/node_modules/.cache/ledger.js", import.meta.url),
);
await bundleApp(join(folder, "main.ts"), bundle);
const { ledgers } = await import(pathToFileURL(bundle).href);

let moved = 0;
for await (const { name, lines } of ledgers(named.length > 0 ? named : ["cpu"])) {
  const file = join(folder, "lines", `${name}.txt`);
  const text = `${lines.join("\n")}\n`;
  if (updates) {
    mkdirSync(join(folder, "lines"), { recursive: true });
    writeWhole(file, text);
    console.log(`${name}: ${lines.length} lines written`);
    continue;
  }
  if (!existsSync(file)) {
    console.log(`${name}: there is no ledger of this adapter; --update writes one`);
    continue;
  }
  const committed = readFileSync(file, "utf8").trimEnd().split("\n");
  const different = committed.filter((line) => !lines.includes(line));
  const other = lines.filter((line) => !committed.includes(line));
  for (const line of different) console.log(`- ${name}: ${line}`);
  for (const line of other) console.log(`+ ${name}: ${line}`);
  moved += Math.max(different.length, other.length);
  console.log(`${name}: ${lines.length - other.length} of ${committed.length} lines as committed`);
}
process.exit(moved === 0 ? 0 : 1);
