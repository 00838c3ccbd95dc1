// `npm run study -- APP [--seeds N] [--variants A,B] [--out DIR]`: trains every variant of an app's study (apps/APP/src/study.ts)
// from every seed, each in a process of its own. Each outcome is one line of docs/benchmarks/APP-study.jsonl. Runs that have an
// outcome there are not repeated, so a study can be stopped and resumed. At the end the script writes APP-study.md from the
// outcomes.
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { gpuEnvironment, probeAdapter } from "./bootstrap/adapter.mjs";
import { bundleApp } from "./start/bundle.mjs";
import { readRuns, runStudy } from "./study/run-study.mjs";
import { writeWhole } from "./whole-file.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const entryOf = (app) => join(root, "apps", app, "src/study.ts");
const usage = "npm run study -- APP [--seeds N] [--variants A,B] [--out DIR]";

const { positionals, values } = optionsOf(process.argv.slice(2));
const [app] = positionals;
if (app === undefined || !existsSync(entryOf(app))) {
  const apps = readdirSync(join(root, "apps")).filter((name) => existsSync(entryOf(name)));
  console.error(`${usage}: name an app that has a study, one of ${apps.join(", ")}.`);
  process.exit(2);
}
const entry = entryOf(app);

Object.assign(process.env, gpuEnvironment());
const bundle = join(root, "apps", app, "dist/study.js");
const trainer = join(root, "packages/trainer");
const trainerBundle = join(trainer, "node_modules/.cache/index.js");
await bundleApp(entry, bundle);
await bundleApp(join(trainer, "src/index.ts"), trainerBundle);
const { default: described } = await import(pathToFileURL(bundle).href);
const { missingRuns, renderStudy } = await import(pathToFileURL(trainerBundle).href);

const seeds = Number(values.seeds ?? described.seeds);
if (!Number.isSafeInteger(seeds) || seeds < 1) {
  console.error(`--seeds ${values.seeds}: it must be a whole number from 1 on.`);
  process.exit(2);
}
const variants = values.variants?.split(",") ?? described.variants;
const unknown = variants.find((name) => !described.variants.includes(name));
if (unknown !== undefined) {
  console.error(`--variants ${unknown}: ${app} has ${described.variants.join(", ")}.`);
  process.exit(2);
}

const out = values.out ?? join(root, "docs/benchmarks");
mkdirSync(out, { recursive: true });
const file = join(out, `${app}-study.jsonl`);
const { adapter = "CPU" } = await probeAdapter(root);
const machine = `${adapter}, ${availableParallelism()} cores, Node ${process.versions.node}`;
const missing = missingRuns({ variants, seeds }, readRuns(file));
console.log(`${app}: ${missing.length} runs to do`);
const failed = await runStudy({ bundle, missing, file, machine, say: console.log });
const runs = readRuns(file);
if (runs.length > 0)
  writeWhole(join(out, `${app}-study.md`), renderStudy(described, runs, `${app}-study.jsonl`));
process.exitCode = failed === 0 ? 0 : 1;

function optionsOf(args) {
  const string = { type: "string" };
  const options = { seeds: string, variants: string, out: string };
  try {
    return parseArgs({ args, allowPositionals: true, options });
  } catch (error) {
    console.error(`${usage}: ${error.message.split(". ", 1)[0]}.`);
    process.exit(2);
  }
}
