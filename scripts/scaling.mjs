// `npm run scaling [-- --tiny | --paired | --document]`: measures training on several hosts, which are network namespaces with links of a rate, and
// writes docs/scaling.json and docs/scaling.md. It needs root, and takes about 20 minutes on a machine that does nothing else.
// With `--tiny` it runs everything on few steps and writes nothing. With `--paired` it measures only what is measured in turns, in a quarter of an
// hour. With `--document` it writes docs/scaling.md from docs/scaling.json.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gpuEnvironment } from "./bootstrap/adapter.mjs";
import { prepareMpi } from "./bootstrap/mpi.mjs";
import { fakeHosts } from "./fake-hosts/fake-hosts.mjs";
import { scalingDocument } from "./scaling/document.mjs";
import { rateFor } from "./scaling/model.mjs";
import { bundleApp } from "./start/bundle.mjs";
import { writeWhole } from "./whole-file.mjs";

const flags = flagsOf(process.argv.slice(2));
/**
 * Samples of a rank, by model: the network of the other measurements with few and with many samples, then those of two apps with the batches
 * that are their defaults. An exchange sends as many bytes whatever the batch is.
 */
const usualWeakBatches = [
  ["mlp", 512],
  ["mlp", 2048],
  ["cnn", 128],
  ["gpt", 16],
];
const tinyWeakBatches = [
  ["mlp", 64],
  ["cnn", 8],
  ["gpt", 2],
];
const from = (path) => fileURLToPath(new URL(path, import.meta.url));
const [data, document] = ["../docs/scaling.json", "../docs/scaling.md"].map(from);
if (!flags.document) {
  const found = await measure(flags.paired && JSON.parse(readFileSync(data, "utf8")));
  if (flags.tiny) console.log(scalingDocument(found));
  else writeWhole(data, `${JSON.stringify(found, undefined, 2)}\n`);
}
if (!flags.tiny) writeWhole(document, scalingDocument(JSON.parse(readFileSync(data, "utf8"))));

/** Measures everything, or replaces what is measured in turns in what was measured before. */
async function measure(earlier) {
  const say = (line) => console.error(`scaling: ${line}`);
  const mpi = await prepareMpi("openmpi", say);
  if (mpi.missing !== undefined) throw new Error(mpi.missing);
  const program = from("../packages/trainer/node_modules/.cache/scaling/rank.js");
  await bundleApp(from("../packages/trainer/bench/scaling/rank.ts"), program);
  const { batch, weakBatches, steps, numbers, rounds } = flags.tiny
    ? { batch: 32, weakBatches: tinyWeakBatches, steps: 2, numbers: 1e6, rounds: 2 }
    : { batch: 128, weakBatches: usualWeakBatches, steps: 9, numbers: 25e6, rounds: 30 };
  const stepsOf = (peers, wire, buckets, more = {}) => ({
    ...{ kind: "steps", peers, wire, buckets, batch, steps, ...more },
  });
  const each = (peers) =>
    ["float32", "float16"].flatMap((wire) =>
      [1, 5].map((buckets) => stepsOf(peers, wire, buckets)),
    );
  const run = (label, hosts, tasks, onMark) => {
    say(label);
    return runRanks({ mpi, program, hosts, tasks, onMark });
  };

  const date = new Date().toISOString().slice(0, 10);
  const machine = `${availableParallelism()} cores, Node ${process.versions.node}`;
  if (earlier) return { ...earlier, paired: await measurePaired() };
  const hosts = fakeHosts(2);
  try {
    const empty = await run("two ranks without a network", hosts, [
      stepsOf("none", "float32", 1),
      ...each("empty"),
    ]);
    const rates = [];
    for (const megabits of [10, 100, 1000]) {
      hosts.setRate(megabits);
      // A quarter of a second, and more than the bursts that a link lets pass at once.
      const link = { kind: "link", bytes: Math.max(1e6, megabits * 31_250) };
      const lines = await run(`two hosts, ${megabits} Mbit/s`, hosts, [link, ...each("job")]);
      rates.push({ megabits, link: lines[0], steps: lines.slice(1) });
    }
    hosts.close();
    const bytes = [];
    for (const [count, ranks] of [
      [2, 1],
      [4, 1],
      [2, 2],
    ])
      bytes.push(await countBytes(count, ranks));
    const paired = await measurePaired();
    return { date, machine, ...{ empty, rates, bytes, paired } };
  } finally {
    hosts.close();
  }

  /** The fastest measurement of each task, of those that take turns. */
  function inTurn(hosts, { label, tasks }) {
    const short = tasks.map((task) => ({ ...task, steps: Math.min(steps, 3) }));
    return run(label, hosts, [{ kind: "turns", tasks: short, rounds }]);
  }

  async function measurePaired() {
    const together = await measureTogether();
    return { date, rounds, ...together, overlap: await measureOverlap() };
  }

  /** Weak scaling, and means of many numbers. */
  async function measureTogether() {
    const hosts = fakeHosts(2, { megabits: 1000 });
    try {
      const weak = [];
      for (const [model, batch] of weakBatches) {
        const [alone, lockstep, job] = await inTurn(hosts, {
          label: `two hosts, 1000 Mbit/s: ${model}, ${batch} samples a rank`,
          // Parts of the size that an exchange has by default.
          tasks: ["alone", "lockstep", "job"].map((peers) =>
            stepsOf(peers, "float16", 5, { model, batch, leastBytes: 2 ** 20 }),
          ),
        });
        weak.push({ alone, lockstep, job });
      }
      const large = await run(
        "two hosts, 1000 Mbit/s: many numbers",
        hosts,
        ["float32", "float16"].map((wire) => ({ kind: "large", wire, numbers })),
      );
      return { weak, large };
    } finally {
      hosts.close();
    }
  }

  /** Steps over links on which an exchange takes 0.6 of the backward pass. */
  async function measureOverlap() {
    const hosts = fakeHosts(2);
    const [[, batch]] = weakBatches;
    const of = (peers, wire, more) => stepsOf(peers, wire, 5, { batch, ...more });
    try {
      const [plain, forward, ...empty] = await inTurn(hosts, {
        label: "two ranks without a network",
        tasks: [
          of("none", "float32"),
          of("none", "float32", { isForward: true }),
          ...["float32", "float16"].map((wire) => of("empty", wire)),
        ],
      });
      const backward = plain.step - forward.step;
      const settings = [];
      for (const each of empty) {
        const megabits = rateFor(each, 0.6 * backward);
        hosts.setRate(megabits);
        const [link] = await run(`two hosts, ${megabits} Mbit/s`, hosts, [
          { kind: "link", bytes: 5e6 },
        ]);
        const [empty, job] = await inTurn(hosts, {
          label: `two hosts, ${megabits} Mbit/s: steps`,
          tasks: ["empty", "job"].map((peers) => of(peers, each.task.wire)),
        });
        settings.push({ megabits, link, empty, job });
      }
      return { backward, settings };
    } finally {
      hosts.close();
    }
  }

  /** What each host sends in a step, by the counter of its link. */
  async function countBytes(count, ranks) {
    const hosts = fakeHosts(count, { ranks, megabits: 1000 });
    const numbers = Array.from({ length: count }, (_, i) => i + 1);
    let before = [];
    const sent = [];
    try {
      const lines = await run(
        `${count} hosts with ${ranks} ranks each`,
        hosts,
        [
          { kind: "link", bytes: 1e6 },
          ...["float32", "float16"].map((wire) => stepsOf("job", wire, 5, { steps: 4, batch: 8 })),
        ],
        (mark) => {
          const now = numbers.map((host) => hosts.sentBytes(host));
          if (mark === "end")
            sent.push(Math.max(...now.map((value, i) => (value - before[i]) / 4)));
          before = now;
        },
      );
      return { hosts: count, ranks, link: lines[0], float32: sent[0], float16: sent[1] };
    } finally {
      hosts.close();
    }
  }
}

function flagsOf(args) {
  const options = Object.fromEntries(
    ["tiny", "paired", "document"].map((name) => [name, { type: "boolean" }]),
  );
  try {
    return parseArgs({ args, options }).values;
  } catch (error) {
    console.error(`npm run scaling [-- --tiny | --paired | --document]: ${error.message}`);
    process.exit(2);
  }
}

/** The lines of rank 0. Each rank is pinned to a core. */
async function runRanks({ mpi, program, hosts, tasks, onMark = () => {} }) {
  const cores = availableParallelism();
  const pinned = `exec taskset -c $(( \${OMPI_COMM_WORLD_RANK:-0} % ${cores} )) "$@"`;
  const [command, ...args] = [
    ...[mpi.launcher, ...hosts.launch],
    ...["/bin/sh", "-c", pinned, "sh", process.execPath, program, JSON.stringify(tasks)],
  ];
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...gpuEnvironment(), ...mpi.env, ...hosts.env },
  });
  const ended = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  const lines = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const found = JSON.parse(line);
    if (found.mark === undefined) lines.push(found);
    else onMark(found.mark);
  }
  const code = await ended;
  if (code !== 0) throw new Error(`the ranks ended with ${code}`);
  return lines;
}
