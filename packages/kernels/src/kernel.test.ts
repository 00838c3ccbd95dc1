import type { Hardware, Kernel } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { runOnGpu, withHardware } from "../test/harness.js";
import type { KernelDefinition } from "./definition.js";
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

describe("a definition", () => {
  const whole: KernelDefinition = {
    name: "own",
    bindings: [{ name: "x", access: "read" }],
    scalars: [{ name: "count", type: "u32" }],
    body: () => "",
    workgroups: () => [1, 1, 1],
    reference() {},
  };
  it.each([
    [{ bindings: [{ name: "x", access: "readonly" }] }, 'binding "x" has the access "readonly"'],
    [{ bindings: [{ name: "x", access: "read", unit: 3 }] }, 'binding "x" has the unit 3'],
    [
      { bindings: [{ name: "x", access: "read", type: "f32" }] },
      'binding "x" has no option "type"',
    ],
    [
      { bindings: [{ name: "x", access: "read", dtypes: ["float64"] }] },
      'takes the dtype "float64"',
    ],
    [{ bindings: [{ name: "x", access: "read", dtypes: [] }] }, "at least one"],
    [{ bindings: [...whole.bindings, ...whole.bindings] }, 'two of its bindings are named "x"'],
    [{ bindings: [{ name: "1x", access: "read" }] }, '"1x" among its bindings is no name'],
    [{ bindings: {} }, "bindings is an object: it must be a list"],
    [{ scalars: [{ name: "n", type: "float" }] }, 'scalar "n" has the type "float"'],
    [{ scalars: [...(whole.scalars ?? []), { name: "count", type: "f32" }] }, 'named "count"'],
    [{ conversions: ["float32"] }, 'no conversion to "float32"'],
    [{ epilogue: "body" }, 'epilogue is "body"'],
    [{ storedOnce: ["y"] }, 'storedOnce names "y"'],
    [{ subgroup: true }, 'it has no option "subgroup"'],
    [{ reference: undefined }, "it has no reference"],
    [{ workgroups: undefined }, "it has no workgroups"],
    [{ workgroups: 3 }, "workgroups is 3: it must be a function"],
  ])("with %j is refused", (over, message) => {
    expect(() => defineKernel({ ...whole, ...over } as never)).toThrow(TypeError);
    expect(() => defineKernel({ ...whole, ...over } as never)).toThrow(message);
    expect(() => defineKernel(whole)).not.toThrow();
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
