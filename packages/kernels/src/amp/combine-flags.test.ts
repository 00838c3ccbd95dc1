import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { type Launches, runOnCpu, runOnGpu } from "../../test/harness.js";
import { assignUnless } from "../copies/assign.js";
import { combineFlags } from "./combine-flags.js";

// Which float32 numbers are flags that are set: all but 0, NaN too, which compilers may take for equal to anything.

const flags = [0, -0, 1, -1, Number.NaN, 1 / 0, -1 / 0, 2 ** -126] as const;
const isSet = (flag: number): boolean => flag !== 0;

const operandsOf = (flag: number) => ({
  flag: { values: [flag] },
  into: { values: [0] },
  x: { values: [9, 9, 9, 9, 9] },
  y: { values: [1, 2, 3, 4, 5] },
});

const both: Launches<ReturnType<typeof operandsOf>> = (target, { flag, into, x, y }) => {
  target.launch(combineFlags({ flag: flag.buffer, into: into.buffer }, { isFirst: false }));
  target.launch(assignUnless({ input: x, unless: flag, out: y }));
};

test.each(["CPU", ...(await testTiers())])("a flag is set unless it is 0: %s", async (tier) => {
  const device = tier === "CPU" ? undefined : await requestTestDevice({ tier: tier as "native" });
  for (const flag of flags) {
    const operands = operandsOf(flag);
    const found = device ? await runOnGpu(device, operands, both) : runOnCpu(operands, both);
    expect([flag, ...found.into]).toEqual([flag, Number(isSet(flag))]);
    expect([flag, ...found.y]).toEqual([
      flag,
      ...(isSet(flag) ? [1, 2, 3, 4, 5] : [9, 9, 9, 9, 9]),
    ]);
  }
});
