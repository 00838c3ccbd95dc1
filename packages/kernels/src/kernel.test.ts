import type { Hardware, Kernel } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { runOnGpu, withHardware } from "../test/harness.js";
import { defineKernel, walkMain, walkWorkgroups } from "./kernel.js";

const hardware = (name: string): Hardware => ({
  class: name,
  workgroupBytes: 16_384,
  workgroupInvocations: 256,
  matrixSubgroupSize: 0,
  subgroupMatrices: [],
});

/** Counts how often each item of work is done, in a buffer of items past the end, too. */
const visits = (each?: number): Kernel =>
  defineKernel({
    name: "visits",
    variant: `${each}`,
    bindings: [{ name: "counts", access: "readwrite", unit: 1, dtypes: ["uint32"] }],
    scalars: [{ name: "items", type: "u32" }],
    body: (
      context,
    ) => `${walkMain("s.items", context)}    store_counts(index, at_counts(index) + 1u);
  }
}
`,
    workgroups: ({ items = 0 }, _, context) => walkWorkgroups(items, context, each),
    reference() {},
  });

describe.each(["software", "unknown"])("a walk on %s hardware", (name) => {
  it.each([undefined, 512])("does every item once, at %s items a workgroup", async (each) => {
    const device = await requestTestDevice();
    const kernel = visits(each);
    const wrong: number[] = [];
    for (const items of [0, 1, 63, 64, 1023, 1024, 1025, 5000]) {
      const { counts } = await runOnGpu(
        device,
        { counts: { values: new Uint32Array(6000), dtype: "uint32" } },
        (target, bindings) =>
          withHardware(target, hardware(name)).launch({
            kernel,
            bindings: [bindings.counts],
            scalars: { items },
          }),
      );
      if (counts.some((count, i) => count !== (i < items ? 1 : 0))) wrong.push(items);
    }
    expect(wrong).toEqual([]);
  });
});
