import { expect, test } from "vitest";
import { bundleProcess } from "./bundle.js";
import { compileCosts } from "./compile-cost.js";
import { type DeviceKind, deviceKinds, programsOn } from "./model-programs.js";

// SwiftShader's compiler took minutes and gigabytes for programs of 64 short circuits. `npm run lanes` runs this on it.

const most = { seconds: 10, bytes: 1e9 };
/** Programs of a process, whose memory is that of all of them. */
const together = 32;
/** Time after which a compilation is ended. A busy machine is several times slower. */
const limit = 120;

const program = await bundleProcess("compile-cost-process");
const kind = deviceKinds.find(({ name }) => name === "SwiftShader") as DeviceKind;
const programs = [...programsOn(kind)].map(([code, { kernel }]) => ({ code, kernel }));

const batches = Array.from({ length: Math.ceil(programs.length / together) }, (_, i) =>
  programs.slice(i * together, (i + 1) * together),
);

test.each(
  batches.map((batch, i) => [i * together + 1, i * together + batch.length, batch] as const),
)(
  `programs %i to %i of ${programs.length} compile in ${most.seconds} s of CPU time each, and 1 GB together`,
  async (_first, _last, batch) => {
    const costs = await compileCosts(
      program,
      batch.map(({ code }) => code),
      limit,
    );
    const found = batch.map(({ kernel }, i) => ({
      name: `${kernel.name} (${kernel.variant})`,
      // A process that was ended has no costs from there on.
      ...(costs[i] ?? { seconds: Number.POSITIVE_INFINITY, bytes: 0 }),
    }));
    const slowest = found.reduce((a, b) => (b.seconds > a.seconds ? b : a));
    const bytes = Math.max(...found.map((each) => each.bytes));
    console.log(
      `note: slowest of ${found.length} programs ${slowest.name}, ${slowest.seconds.toFixed(2)} s; most memory: ${(bytes / 1e6).toFixed(0)} MB`,
    );
    expect(found.filter((each) => each.seconds > most.seconds)).toEqual([]);
    expect(bytes).toBeLessThan(most.bytes);
  },
);
