import type { Binding, DType, LaunchTarget } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
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
  withoutSubgroups,
} from "../../test/harness.js";
import { elementwiseKernel } from "../elementwise.js";
import { takesEpilogue, withEpilogue } from "../epilogue.js";
import { add, relu } from "../expressions.js";
import { type ReduceAttributes, reduce } from "./reduce.js";

interface Case extends ReduceAttributes {
  readonly storage: "float32" | "float16" | "bfloat16";
  /** Whether the result is finished by an epilogue: x + relu(x). */
  readonly finished?: boolean;
}

/** Columns in pairs and in quads, in one stage and two; long rows of pairs, of quads and of an odd number of rows; what teams do not fold. */
const cases: readonly Case[] = [
  { op: "mean", outer: 3, size: 7, inner: 24, storage: "float16" },
  { op: "sum", outer: 1, size: 900, inner: 16, storage: "bfloat16" },
  { op: "max", outer: 2, size: 9, inner: 8, storage: "float16" },
  { op: "sum", outer: 3, size: 9, inner: 8, storage: "bfloat16", finished: true },
  { op: "mean", outer: 6, size: 64, inner: 1, storage: "float16", finished: true },
  { op: "prod", outer: 2, size: 9, inner: 16, storage: "bfloat16" },
  { op: "sumOfSquares", outer: 5, size: 9, inner: 12, storage: "float16" },
  { op: "mean", outer: 7, size: 40, inner: 1, storage: "float16" },
  { op: "sumOfSquares", outer: 5, size: 512, inner: 1, storage: "bfloat16" },
  { op: "sum", outer: 6, size: 36, inner: 1, storage: "bfloat16" },
  { op: "sum", outer: 9, size: 300, inner: 1, storage: "float32" },
  { op: "min", outer: 6, size: 40, inner: 1, storage: "float16" },
];

const finish = elementwiseKernel({
  inputs: ["same"],
  steps: [
    { expression: relu, operands: [0] },
    { expression: add, operands: [0, 1] },
  ],
  outputs: [1],
});

/** The same target, on which reductions are finished by {@link finish}. */
const finishing = <B>(target: LaunchTarget<B>): LaunchTarget<B> => ({
  allocate: (bytes) => target.allocate(bytes),
  launch(launch) {
    const { kernel, bindings } = launch;
    if (!takesEpilogue(kernel)) throw new Error(`${kernel.name} takes no epilogue`);
    const out = bindings.at(-1) as Binding<B>;
    const scalars = { count: out.length, one: 1 };
    const last = { kernel: finish, bindings: [out, out], scalars };
    target.launch(withEpilogue({ ...launch, kernel }, last, { results: [0] }));
  },
});

const title = ({ op, outer, size, inner, storage }: Case): string =>
  `${op} of [${outer},${size},${inner}] ${storage}`;

describe.each(await tiersInLanes())("reductions by programs for GPUs, %s tier", (tier) => {
  it("equal those of the CPU, by subgroups and without", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const attributes of cases) {
      const { outer, size, inner, storage } = attributes;
      const values = testValues(outer * size * inner, 1);
      const operands = {
        input: {
          values: values.map((v) => (attributes.op === "prod" ? v * 2 : v)),
          dtype: storage,
        },
        // Not zeros, so that what is stored behind the end can be told.
        out: {
          values: new Float32Array(Math.ceil((outer * inner) / 4) * 4).fill(3),
          dtype: storage,
        },
      };
      const launches: Parameters<typeof runOnCpu<typeof operands>>[1] = (target, all) =>
        reduce(
          attributes.finished ? finishing(target) : target,
          { ...all, out: { ...all.out, length: outer * inner } },
          attributes,
        );
      const want = runOnCpu(operands, launches).out.map((v, i) => (i < outer * inner ? v : 0));
      for (const place of [<B>(target: B) => target, withoutSubgroups]) {
        const got = await runOnGpu(device, operands, (target, all) =>
          launches(withHardware(place(target), someGpu), all),
        );
        const tolerance = { relative: 1.01 * 2 * unitRoundoff[storage], absolute: 2 ** -18 };
        const texts = mismatches(got.out, want, tolerance);
        found.push(...texts.map((text) => `${title(attributes)}: ${text}`));
      }
    }
    expect(found).toEqual([]);
  });
});

describe("the WGSL of reductions", () => {
  const codeOf = (
    { op, outer, size, inner }: ReduceAttributes,
    dtype: DType,
    hardware = someGpu,
  ): string => {
    const operands = {
      input: withoutMemory(outer * size * inner, dtype),
      out: withoutMemory(outer * inner, dtype),
    };
    const codes = programsOf({ tier: "native", subgroupSize: 32, hardware }, (target) =>
      reduce(target, operands, { op, outer, size, inner }),
    );
    return codes.reduce as string;
  };
  const columns = { op: "sum", outer: 2, size: 9, inner: 16 } as const;
  const rows = { op: "mean", outer: 100, size: 256, inner: 1 } as const;

  it("loads 16 bytes at a time where the input has 16 bits", () => {
    for (const shape of [columns, rows]) {
      expect(codeOf(shape, "float16")).toContain("input_data: array<vec4u>");
      expect(codeOf(shape, "float32")).not.toContain("array<vec4u>");
    }
  });

  it("sums long rows by neighbouring lanes", () => {
    for (const dtype of ["float16", "float32"] as const)
      expect(codeOf(rows, dtype)).toContain("subgroupAdd(");
    expect(codeOf({ ...rows, size: 28 }, "float16")).not.toContain("subgroupAdd(");
  });

  it("has an invocation for each quad of columns or of rows on CPUs", () => {
    const software = { ...someGpu, class: "software" };
    for (const shape of [columns, rows])
      expect(codeOf(shape, "float16", software)).not.toMatch(/array<vec4u>|subgroupAdd/);
  });
});
