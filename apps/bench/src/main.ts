import { join, resolve } from "node:path";
import { NoAdapterError } from "@halfstep/device";
import { StorageError } from "@halfstep/trainer";
import { writeWholeFolder } from "@halfstep/trainer/node";
import { benchmark } from "./benchmark.js";
import { dumpPlans } from "./dump-plans.js";
import { serveLane } from "./lane-process.js";
import { help, parseOptions, UsageError } from "./options.js";
import { pack } from "./pack.js";
import { installPeers, peersFolder } from "./peers.js";
import { htmlOf } from "./report/html.js";
import { markdownOf } from "./report/markdown.js";
import { tablesOf } from "./report/tables.js";
import type { Report } from "./results.js";

// The same bundle is run again for each lane.
if (process.argv[2] === "lane") serveLane();
else process.exitCode = await main(process.argv.slice(2)).catch(report);

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args);
  if (options === "help") {
    console.log(help);
    return 0;
  }
  if (options.pack !== undefined) {
    const problem = options.withPeers ? await installPeers(peersFolder, say) : undefined;
    if (problem !== undefined) say(`${problem}; packing without peers`);
    await pack(resolve(options.pack), process.argv[1] as string, peersFolder);
    say(`packed ${options.pack}: unpack it elsewhere and run sh bench/run.sh, or sh bench/tune.sh`);
    return 0;
  }
  if (options.dumpPlan) {
    for await (const plan of dumpPlans(options)) console.log(plan);
    return 0;
  }
  let results: Report | undefined;
  // Written after each workload, so that an interrupted run keeps its measurements.
  for await (results of benchmark(options, process.argv[1] as string, say))
    await writeResults(results, options.out);
  if (results) console.log(options.json ? JSON.stringify(results) : markdownOf(tablesOf(results)));
  say(`results: ${join(options.out, "bench.{json,md,html}")}`);
  return 0;
}

/** The three say the same: a full disk leaves those of the workload before. */
async function writeResults(results: Report, out: string): Promise<void> {
  const page = tablesOf(results);
  await writeWholeFolder(out, async (folder) => {
    await folder.write("bench.json", `${JSON.stringify(results, undefined, 1)}\n`);
    await folder.write("bench.md", markdownOf(page));
    await folder.write("bench.html", htmlOf(page));
  });
}

function report(error: unknown): number {
  const { message } = error as Error;
  if (error instanceof UsageError) {
    say(message);
    return 2;
  }
  say(`error: ${error instanceof Error ? message.split("\n", 1)[0] : error}`);
  if (error instanceof StorageError) return 4;
  return error instanceof NoAdapterError ? 3 : 1;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
