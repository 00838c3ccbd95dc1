// `npm run ablate [-- --no-time] [--only PASS]`: drops each pass of the planner in turn and writes docs/benchmarks/passes.md: the
// effect on launches, bytes and memory of the reference models' steps, and on the time of one step for each pass, within about ten
// minutes. With `--only PASS` the tables of one pass are printed, and nothing is written.
import { availableParallelism, loadavg } from "node:os";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { enterGpuEnvironment } from "./bootstrap/adapter.mjs";
import { bundleApp } from "./start/bundle.mjs";
import { writeWhole } from "./whole-file.mjs";

const usage = "npm run ablate [-- --no-time] [--only PASS]";
const { only, "no-time": noTime } = optionsOf(process.argv.slice(2));

await enterGpuEnvironment();
const from = (path) => fileURLToPath(new URL(path, import.meta.url));
const bundle = from("../packages/trainer/node_modules/.cache/ablation.js");
await bundleApp(from("../packages/trainer/test/ablation/main.ts"), bundle);
const { ablate, allPasses } = await import(pathToFileURL(bundle).href);
if (only !== undefined && !allPasses.includes(only)) {
  console.error(`${usage}: there is no pass ${only}, but ${allPasses.join(", ")}.`);
  process.exit(2);
}

const load = () => loadavg()[0].toFixed(1);
const loadBefore = load();
const { tables, adapter } = await ablate({
  passes: only === undefined ? allPasses : [only],
  timeBudget: noTime ? 0 : (only === undefined ? 8 : 1) * 60_000,
  say: console.error,
});
const machine = `${availableParallelism()} cores, Node ${process.versions.node}`;
const date = new Date().toISOString().slice(0, 10);
const times = adapter
  ? `Times: ${adapter}, ${machine}, ${date}; load average ${loadBefore} before and ${load()} after. For each pass one planned step is timed:
the one of a software adapter whose bytes the pass lessens most. Steps with and without the pass take turns in pairs. The figures are the
median of the time without the pass over the time with it, and its quartiles. The time of the driver’s threads is CPU time, which other
work on the machine changes little. Where the quartiles are on both sides of 1, no difference is shown.`
  : `Times were not measured. ${machine}, ${date}.`;
const text = `# What each pass of the planner gains

Written by \`npm run ablate\`. Each row drops one pass and keeps the others: what grows without a pass is what the pass saves. A pass may
show nothing because another does its work when it is gone.

The steps are AMP training of the reference models and of a wide MLP, in float32, float16 and bfloat16, with and without clipping, with one batch and with
two accumulated ones. They are planned for a software adapter and for a GPU (nvidia stands for all). Only times depend on the machine. Bytes are those of
all operands and results of all launches: what two launches load counts twice, and what a launch loads of a table counts whole. Least, median and most are
of the plans that change.

${times}

${tables}
`;
if (only === undefined) writeWhole(from("../docs/benchmarks/passes.md"), text);
else console.log(tables);
process.exit(0);

function optionsOf(args) {
  const options = { only: { type: "string" }, "no-time": { type: "boolean" } };
  try {
    return parseArgs({ args, options }).values;
  } catch (error) {
    console.error(`${usage}: ${error.message.split(". ", 1)[0]}.`);
    process.exit(2);
  }
}
