import type { Binding, Device, DType, HalfDType, Launch } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  casesOf,
  mismatches,
  programsOf,
  runOnCpu,
  runOnGpu,
  someGpu,
  testValues,
  tiersInLanes,
  unitRoundoff,
  withHardware,
  withoutMemory,
} from "../test/harness.js";
import { elementwise } from "./elementwise.js";
import { add, mul } from "./expressions.js";
import { type ElementwiseLaunch, fuseElementwiseLaunches } from "./fused-elementwise.js";
import type { TwinnableKernel } from "./kernel.js";
import { dropout } from "./random.js";
import { storingTwice } from "./twin.js";

/** How two factors and the result are stored, and how the first factor is rounded. */
interface Storages {
  readonly x: DType;
  readonly y: DType;
  readonly out: "float32" | HalfDType;
  readonly rounding?: HalfDType;
}

/** The shape of the second factor; products that are added to the first factor, too; and random bits. */
type Kind = "same" | "row" | "strided" | "scalar" | "fused" | "random";

const half: Storages = { x: "float16", y: "float16", out: "float16" };

const cases: readonly (readonly [Kind, Storages])[] = [
  ["same", { x: "float32", y: "float32", out: "float32" }],
  ["same", half],
  ["same", { x: "bfloat16", y: "bfloat16", out: "bfloat16" }],
  ["fused", { x: "float16", y: "bfloat16", out: "bfloat16", rounding: "bfloat16" }],
  ["same", { x: "float16", y: "float32", out: "bfloat16" }],
  ["row", { x: "bfloat16", y: "float32", out: "float16" }],
  ["strided", half],
  ["random", half],
  ["scalar", { x: "float16", y: "float32", out: "bfloat16" }],
  ["fused", { x: "float16", y: "float16", out: "float32" }],
];

/** None, one, quads and pairs of quads with every kind of tail, and more than a workgroup moves at a time. */
const lengths = [0, 1, 4, 5, 8, 11, 12, 13, 2049, 2056, 4101];

const source = { seed: 2 ** 40 + 7, block: 2 ** 32 - 3, stream: 5 };

/** A product of `size` elements: in whole rows of three where the second factor is broadcast along rows or columns. */
function launchOf<B>(
  kind: Kind,
  all: Readonly<Record<"x" | "y" | "product" | "out", Binding<B>>>,
  size: number,
): Launch<B> {
  const shape = kind === "row" || kind === "strided" ? [size / 3, 3] : [size];
  const shapes: Partial<Record<Kind, number[]>> = {
    ...{ row: [3], strided: [size / 3, 1], scalar: [1] },
  };
  const x = { ...all.x, length: size, shape };
  const y = { ...all.y, shape: shapes[kind] ?? shape };
  const out = { ...all.out, length: size, shape };
  if (kind === "random") return dropout({ input: x, out }, source, 0.5);
  if (kind !== "fused") return elementwise(mul, [x, y], out);
  const product = { ...all.product, length: size, shape };
  const fused = fuseElementwiseLaunches(
    elementwise(mul, [x, y], product) as ElementwiseLaunch<B>,
    elementwise(add, [product, x], out) as ElementwiseLaunch<B>,
  );
  if (!fused) throw new Error("not fused");
  return fused.launch;
}

/** Where results differ from those of the CPU, or memory behind the last quad is written. */
async function mismatchesOf(
  device: Device,
  kind: Kind,
  storages: Storages,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const length of lengths) {
    const size = kind === "row" || kind === "strided" ? Math.ceil(length / 3) * 3 : length;
    const sizes = { row: 3, strided: size / 3, scalar: 1 } as Partial<Record<Kind, number>>;
    const { out: dtype } = storages;
    // Behind the results is memory of others.
    const before = new Float32Array(size + 16).fill(3);
    const operands = {
      x: {
        ...{ values: testValues(size, 1), dtype: storages.x },
        ...(storages.rounding && { rounding: storages.rounding }),
      },
      y: { values: testValues(sizes[kind] ?? size, 2), dtype: storages.y },
      product: { values: size },
      out: { values: before, dtype },
    };
    const want = runOnCpu(operands, (target, all) => target.launch(launchOf(kind, all, size)));
    const got = await runOnGpu(device, operands, (target, all) =>
      withHardware(target, someGpu).launch(launchOf(kind, all, size)),
    );
    const expected = want.out.map((value, i) =>
      i >= size && i < Math.ceil(size / 4) * 4 ? 0 : value,
    );
    const tolerance = { relative: 2 * unitRoundoff[dtype], absolute: 0 };
    const texts = mismatches(got.out, expected, tolerance);
    found.push(...texts.map((text) => `${kind} ${size} ${JSON.stringify(storages)}: ${text}`));
  }
  return found;
}

const tiers = await tiersInLanes();

describe.each(tiers)("elementwise programs for GPUs, %s tier", (tier) => {
  it("store what the CPU stores, zeros to the end of the last quad, and nothing behind", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const [kind, storages] of casesOf(cases, tier, tiers))
      found.push(...(await mismatchesOf(device, kind, storages)));
    expect(found).toEqual([]);
  });
});

describe("the WGSL of elementwise programs", () => {
  const codeOf = (kind: Kind, { x, y, out }: Storages, hardware = someGpu): string => {
    const operand = (dtype: DType) => withoutMemory(24, dtype);
    const all = { x: operand(x), y: operand(y), product: operand("float32"), out: operand(out) };
    const context = { tier: "native", subgroupSize: 32, hardware } as const;
    return (
      Object.values(programsOf(context, (target) => target.launch(launchOf(kind, all, 24))))[0] ??
      ""
    );
  };
  const count = (code: string, part: string): number => code.split(part).length - 1;

  it("moves 16 bytes at a time where all streamed operands have 16 bits", () => {
    for (const kind of ["same", "fused"] as const) {
      const code = codeOf(kind, { x: "float16", y: "bfloat16", out: "bfloat16" });
      expect(count(code, "array<vec4u>")).toBe(3);
      for (const access of ["= load_x0(", "= load_x1(", " store_y0(pair, "])
        expect(count(code, access)).toBe(1);
    }
    // A row is not streamed: it may have 32 bits.
    expect(count(codeOf("row", { ...half, y: "float32" }), "array<vec4u>")).toBe(2);
  });

  it("moves quads where one has 32 bits, and on CPUs", () => {
    const software = { ...someGpu, class: "software" };
    for (const code of [
      codeOf("same", { ...half, y: "float32" }),
      codeOf("same", { ...half, out: "float32" }),
      codeOf("scalar", { ...half, out: "float32" }),
      codeOf("same", half, software),
    ])
      expect(code).not.toContain("vec4u>;");
  });

  it("moves a twin as the other operands, and quads where the twin has 32 bits", () => {
    const pairsWith = (twin: DType): number => {
      const x = { ...withoutMemory(24, "float16"), shape: [24] };
      const launched = elementwise(mul, [x, x], x);
      const { kernel, bindings } = storingTwice(
        launched as typeof launched & { readonly kernel: TwinnableKernel },
        2,
        withoutMemory(24, twin),
      );
      const context = { tier: "native", subgroupSize: 32, hardware: someGpu, bindings } as const;
      return count(kernel.program(context).code, "array<vec4u>");
    };
    expect([pairsWith("bfloat16"), pairsWith("float32")]).toEqual([4, 0]);
  });
});
