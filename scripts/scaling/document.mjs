import { exchangeTime, firstRanks, latencyOf, stepTime } from "./model.mjs";

// docs/scaling.md, from what `npm run scaling` has measured.

/** Ranks of the table that the model fills. */
const manyRanks = [2, 8, 32, 128, 512, 1000];
const mostRanks = 1000;

const percent = (share) => `${Math.round(100 * share)} %`;
const ms = (value) => (value < 100 ? value.toFixed(1) : value.toFixed(0));
const table = (head, rows) =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

/** The steps without a network that belong to a task. */
const emptyOf = ({ empty }, { wire, buckets }) =>
  empty.find(
    ({ task }) => task.peers === "empty" && task.wire === wire && task.buckets === buckets,
  );

/** A measured setting beside the model. */
function setting(found, link, measured) {
  const { task } = measured;
  const empty = emptyOf(found, task);
  const model = stepTime(empty, link);
  const exposed = Math.max(0, measured.step - empty.step);
  const exchange = exchangeTime(empty, link);
  return { task, step: measured.step, model, exposed, exchange, empty };
}

/** @param {object} found the contents of docs/scaling.json */
export function scalingDocument(found) {
  const settings = found.rates.flatMap(({ megabits, link, steps }) =>
    steps.map((measured) => ({ megabits, ...setting(found, link, measured) })),
  );
  const plain = found.empty.find(({ task }) => task.peers === "none");
  const worst = Math.max(...settings.map(({ step, model }) => Math.abs(model / step - 1)));
  const { weak, large, overlap, date, rounds } = found.paired;
  const stalls = [...weak, ...overlap.settings].map(({ job }) => job.stall);
  const most = (which, of = stalls) => ms(Math.max(...of.map((each) => each[which])));
  const cuts = found.empty.filter(({ task }) => task.peers === "empty");
  const [float32, float16] = large.map(({ milliseconds }) => milliseconds);
  return `# Scaling

What an exchange of gradients costs, measured on hosts that are network namespaces of one machine, with links of a rate. This page is written by
\`npm run scaling\` from [scaling.json](scaling.json): ${found.machine}, ${found.date}. Each rank is pinned to a core, and trains an MLP of
eight layers of 384 on Mesa's software driver, ${plain.task.batch} samples a rank.

## Steps over a network

A bucket is sent as soon as its gradients are computed. The model of a step is \`t = compute + exposed(α, β, readiness)\`. Compute and readiness are measured
with an exchange that does everything but sending. α, the latency of a collective, and β, the bytes a second, are measured with collectives of two sizes.

${table(
  ["Mbit/s", "wire", "buckets", "step, ms", "model, ms", "difference", "exchange, ms", "hidden"],
  settings.map(({ megabits, task, step, model, exchange, exposed }) => [
    megabits,
    task.wire,
    task.buckets,
    ms(step),
    ms(model),
    percent(model / step - 1),
    ms(exchange),
    percent(Math.max(0, 1 - exposed / exchange)),
  ]),
)}

Open MPI sends large messages in fragments here (\`--mca btl_tcp_flags 1 --mca btl_tcp_sndbuf 65536 --mca btl_tcp_rcvbuf 131072\`). By default it asks for each by a
request that may wait behind the data of the other direction: at 10 Mbit/s exchanges then took up to 1.6 times as long, in some steps and not in others.

- The model is within ${percent(worst)} of every step.
- Without an exchange a step takes ${ms(plain.step)} ms. An exchange without peers adds ${cuts
    .map(({ task, step }) => `${ms(step - plain.step)} ms (${task.wire}, ${task.buckets})`)
    .join(", ")}.

Measured in turns, on ${date}${rounds ? `. Of ${rounds} measurements the fastest counts: other work on the machine only delays them` : ""}:

${overlapLine(overlap)}
- The mean of ${large[0].task.numbers / 1e6} million numbers at 1000 Mbit/s takes ${ms(float32)} ms in float32 and ${ms(float16)} ms in float16, which is ${(float32 / float16).toFixed(2)} times faster.
- In these steps code of a rank stopped the event loop for at most ${most("own")} ms, and during the means of many numbers for ${most(
    "own",
    large.map(({ stall }) => stall),
  )} ms. With the time in which threads
  of the driver had its core it stood still for up to ${most("longest")} ms.

## Weak scaling

From one rank to two at 1000 Mbit/s, with a float16 wire: the time of a step of a rank alone by that of a step of two ranks, each with so many samples.
In lockstep two ranks exchange nothing, but wait for each other after each step, so that they share the memory of the machine and no more. An exchange sends
the same bytes whatever the batch is: a larger batch leaves it less of a step. Measured in turns as above.

${weakTable(weak)}

## Bytes

What a host sends in a step, by the counter of its interface, with the headers of TCP.

${table(
  ["hosts × ranks", "float32", "float16", "float16 / float32"],
  found.bytes.map((each) => [
    `${each.hosts} × ${each.ranks}`,
    `${(each.float32 / 1e6).toFixed(2)} MB`,
    `${(each.float16 / 1e6).toFixed(2)} MB`,
    (each.float16 / each.float32).toFixed(3),
  ]),
)}

${manyRanksPart(found)}`;
}

/** What the models of weak scaling are. */
const weakModels = {
  mlp: "MLP",
  cnn: "CNN of the digits app",
  gpt: "GPT of the language-model app",
};

/** How much of its speed a rank keeps beside another one, by model and batch. */
const weakTable = (weak) =>
  table(
    ["model", "samples a rank", "alone, ms", "lockstep, ms", "together, ms", "weak scaling"],
    weak.map(({ alone, lockstep, job }) => [
      weakModels[job.task.model],
      job.task.batch,
      ...[alone, lockstep, job].map(({ step }) => ms(step)),
      percent(alone.step / job.step),
    ]),
  );

/** What five buckets hide of an exchange that is a little shorter than the backward pass. */
function overlapLine({ backward, settings }) {
  const hidden = settings.map(({ megabits, link, empty, job }) => {
    const exchange = exchangeTime(empty, link);
    const share = Math.max(0, 1 - Math.max(0, job.step - empty.step) / exchange);
    return `${percent(share)} in ${job.task.wire} (${megabits} Mbit/s, ${ms(exchange)} ms)`;
  });
  return `- Links were given a rate at which an exchange takes about 0.6 of the backward pass: ${ms(backward)} ms at ${settings[0].job.task.batch} samples a rank.
  Five buckets then hide ${hidden.join(" and ")}.
  In the table above exchanges at 10 and 100 Mbit/s take longer than the whole step.`;
}

/** The model for more ranks than were measured. */
function manyRanksPart(found) {
  const four = found.bytes.find(({ hosts, ranks }) => hosts === 4 && ranks === 1).link;
  const rows = [];
  const limits = [];
  for (const { megabits, link } of found.rates) {
    const latency = latencyOf(link, four);
    for (const wire of ["float32", "float16"]) {
      const empty = emptyOf(found, { wire, buckets: 5 });
      const timeAt = (ranks) => stepTime(empty, { ...link, latency: latency(ranks) }, ranks);
      const alone = found.empty.find(({ task }) => task.peers === "none").step;
      rows.push([megabits, wire, ...manyRanks.map((ranks) => percent(alone / timeAt(ranks)))]);
      const saturated = firstRanks(
        mostRanks,
        (ranks) => exchangeTime(empty, { ...link, latency: latency(ranks) }, ranks) > alone,
      );
      limits.push(
        `- ${megabits} Mbit/s, ${wire}: ${
          saturated === undefined
            ? `up to ${mostRanks} ranks an exchange takes less time than a step`
            : `from ${saturated} ranks on an exchange takes longer than a step`
        }.`,
      );
    }
  }
  return `## Up to ${mostRanks} ranks

The model with the constants above, one rank a host, five buckets: how much of its time a rank computes. The bytes of a rank approach twice those of its
gradients. The latency of a collective is a line through those of two and of four ranks, because every rank sends to
every other; here four ranks share two cores, which makes it larger than it is on hosts.

${table(["Mbit/s", "wire", ...manyRanks.map((ranks) => `${ranks} ranks`)], rows)}

Where an exchange takes longer than a step, the wire is saturated: nothing can hide it, and only larger batches, fewer exchanges (DiLoCo) or fewer
bytes help.

${limits.join("\n")}
`;
}
