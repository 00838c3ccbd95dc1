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

test(`${programs.length} programs of the models compile in ${most.seconds} s of CPU time each, and 1 GB`, async () => {
  const found: { name: string; seconds: number; bytes: number }[] = [];
  for (let start = 0; start < programs.length; start += together) {
    const batch = programs.slice(start, start + together);
    const codes = batch.map(({ code }) => code);
    const costs = await compileCosts(program, codes, limit);
    for (const [i, { kernel }] of batch.entries())
      found.push({
        name: `${kernel.name} (${kernel.variant})`,
        ...(costs[i] ?? { seconds: Number.POSITIVE_INFINITY, bytes: 0 }),
      });
  }
  const slowest = found.reduce((a, b) => (b.seconds > a.seconds ? b : a));
  const bytes = Math.max(...found.map((each) => each.bytes));
  console.log(
    `slowest: ${slowest.name}, ${slowest.seconds.toFixed(2)} s; most memory: ${(bytes / 1e6).toFixed(0)} MB; ` +
      `all: ${found.reduce((sum, { seconds }) => sum + seconds, 0).toFixed(1)} s`,
  );
  expect(found.filter((each) => each.seconds > most.seconds)).toEqual([]);
  expect(bytes).toBeLessThan(most.bytes);
});
