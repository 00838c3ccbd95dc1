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

describe("a kernel's own names", () => {
  it("are not those of what is woven into kernels", () => {
    const named = (binding: string, scalar: string) => () =>
      defineKernel({
        name: "own",
        bindings: [{ name: binding, access: "write" }],
        scalars: [{ name: scalar, type: "u32" }],
        body: () => "",
        workgroups: () => [1, 1, 1],
        reference() {},
      });
    expect(named("x0", "one")).not.toThrow();
    expect(named("woven_x0", "one")).toThrow(
      new TypeError(
        'binding "woven_x0" of kernel "own": names that begin with "woven_" are for what is woven into kernels: choose another',
      ),
    );
    expect(named("x0", "woven_one")).toThrow('scalar "woven_one" of kernel "own"');
  });
});
