/** Speed of bulk conversion against peers, this Node and one with Float16Array, each in a process of its own. */
import { execFileSync } from "node:child_process";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { writeWhole } from "../../../scripts/whole-file.mjs";
import { installPeers } from "./peers.js";
import type { Result } from "./worker.js";

const help = `Speed of bulk conversion against peers, on this Node and on one with Float16Array, as Markdown. Installs the peers first.

  npm run bench -w @halfstep/formats -- [--quick | --write]

  --quick  16 and 1 Mi elements only
  --write  into docs/benchmarks/formats.md too
  --help   print this
`;

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean" },
    write: { type: "boolean" },
    help: { type: "boolean" },
  },
});
if (options.help) {
  process.stdout.write(help);
  process.exit();
}
if (options.quick && options.write) throw new Error("--write takes all lengths: leave out --quick");

const lengths = options.quick ? [16, 2 ** 20] : [16, 1024, 2 ** 20, 2 ** 24];

function measure(node: string): { version: string; results: Result[] } {
  const version = execFileSync(node, ["--version"], { encoding: "utf8" }).trim();
  process.stderr.write(`${version} …\n`);
  const output = execFileSync(node, ["node_modules/.bench/worker.mjs", ...lengths.map(String)], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  const results = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Result);
  return { version, results };
}

const size = (length: number): string =>
  length >= 2 ** 20
    ? `${length / 2 ** 20} Mi`
    : length >= 1024
      ? `${length / 1024} Ki`
      : `${length}`;
const times = (factor: number): string => `${factor.toPrecision(factor < 10 ? 2 : 3)}×`;

/**
 * One row a contestant, one column a length: its time as a multiple of this package's, and this package's as a multiple
 * of a copy.
 */
function table(results: readonly Result[]): string {
  const names = [...new Set(results.flatMap(({ entries }) => entries.map(({ name }) => name)))];
  const rows = names.map((name, row) => {
    const cells = results.map(({ entries, memcpy }) => {
      const ours = entries[0]?.time as number;
      const entry = entries.find((candidate) => candidate.name === name);
      if (!entry) return "";
      return row === 0
        ? `${ours.toPrecision(2)} ns, ${times(ours / memcpy)} a copy`
        : times(entry.time / ours);
    });
    return `| ${name} | ${cells.join(" | ")} |`;
  });
  const head = `| | ${results.map(({ length }) => size(length)).join(" | ")} |`;
  return [head, `|---|${results.map(() => "---:|").join("")}`, ...rows].join("\n");
}

/** The least advantage over the best peer at these lengths, of the tasks that have peers. */
function leastAdvantage(results: readonly Result[], isLong: boolean): number {
  const factors = results
    .filter(({ length }) => (isLong ? length >= 2 ** 20 : length === 16))
    .flatMap(({ entries }) => {
      const peers = entries.filter(({ isPeer }) => isPeer).map(({ time }) => time);
      return peers.length > 0 ? [Math.min(...peers) / (entries[0]?.time as number)] : [];
    });
  return Math.min(...factors);
}

function section({ version, results }: ReturnType<typeof measure>): string {
  const tasks = [...new Set(results.map(({ task }) => task))];
  const tables = tasks.map(
    (task) => `### ${task}\n\n${table(results.filter((result) => result.task === task))}`,
  );
  return `## Node ${version}

The best peer written in JavaScript takes at least ${times(leastAdvantage(results, true))} our time from 1 Mi elements on, and ${times(leastAdvantage(results, false))} at 16.

${tables.join("\n\n")}`;
}

const newer = installPeers();
const report = `# Bulk conversion

\`npm run bench -w @halfstep/formats -- --write\` on ${cpus()[0]?.model ?? "an unknown processor"}. All contestants give the same results, which is checked
before anything is timed; they take turns, and each figure is the median of its samples. The first row is this package: time an
element, and as a multiple of a copy that moves as many bytes in the same run, which is the limit. The others are multiples of
that time: above 1×, they are slower. "Without WebAssembly" is this package's loop alone, without the call around it. Tasks
without rows for peers have none that we know of. The machine was shared (load ${loadavg()[0]?.toFixed(1)} on ${cpus().length} processors): ratios count, times do not.

${[process.execPath, newer].map((node) => section(measure(node))).join("\n\n")}
`;
process.stdout.write(report);
if (options.write) {
  writeWhole("../../docs/benchmarks/formats.md", report);
}
