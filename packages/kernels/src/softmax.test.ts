import type { DType, KernelView } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { mismatches, programsOf, runOnCpu, someGpu, withoutMemory } from "../test/harness.js";
import {
  type RowsCase as Case,
  launchesOf,
  operandsOf,
  rowMismatches,
  title,
  toleranceOf,
} from "../test/softmax-rows.js";
import { softmaxCrossEntropyBackward } from "./losses/cross-entropy.js";
import { softmax, softmaxBackward } from "./softmax.js";

/** Rows in whole quads and not, row counts with every tail, one and none. */
const cases: readonly Case[] = [
  { rows: 128, columns: 10 },
  { rows: 5, columns: 64 },
  { rows: 7, columns: 3 },
  { rows: 3, columns: 130, ignoreIndex: 2 },
  { rows: 1, columns: 1 },
  { rows: 0, columns: 5 },
  { rows: 9, columns: 12, storage: "float16", ignoreIndex: 0 },
  { rows: 6, columns: 10, storage: "bfloat16" },
];

/** Long rows, in whole quads and not. */
const shared: Case = { rows: 6, columns: 301, ignoreIndex: 2 };
const sharedQuads: Case = { rows: 5, columns: 516, storage: "float16" };

/** Each formula in float64, row by row, with the gradients as Jacobians. */
function expected({ rows, columns, ignoreIndex }: Case, stored: Record<string, KernelView>) {
  const results: Record<string, number[]> = {
    softmax: [],
    softmaxGradient: [],
    logSoftmax: [],
    logSoftmaxGradient: [],
    losses: [],
    meanGradient: [],
    noneGradient: [],
  };
  const push = (name: string, values: number[]): void => {
    results[name]?.push(...values);
  };
  for (let r = 0; r < rows; r++) {
    const row = (name: string): number[] =>
      Array.from(stored[name]?.subarray(r * columns, (r + 1) * columns) ?? []);
    const x = row("input");
    const dy = row("outGradient");
    const label = stored.labels?.[r] as number;
    const top = Math.max(...x);
    const logTotal = Math.log(x.reduce((sum, v) => sum + Math.exp(v - top), 0));
    const p = x.map((v) => Math.exp(v - top - logTotal));
    push("softmax", p);
    push(
      "logSoftmax",
      x.map((v) => v - top - logTotal),
    );
    // The gradient reads the stored values.
    const [y, logY] = [row("softmax"), row("logSoftmax")];
    const jacobian = (entry: (i: number, j: number) => number): number[] =>
      y.map((_, j) => dy.reduce((sum, g, i) => sum + g * entry(i, j), 0));
    const delta = (i: number, j: number): number => (i === j ? 1 : 0);
    push(
      "softmaxGradient",
      jacobian((i, j) => (y[j] as number) * (delta(i, j) - (y[i] as number))),
    );
    push(
      "logSoftmaxGradient",
      jacobian((i, j) => delta(i, j) - Math.exp(logY[j] as number)),
    );
    const isIgnored = label === ignoreIndex;
    push("losses", [isIgnored ? 0 : top + logTotal - (x[label] as number)]);
    push(
      "meanGradient",
      p.map((v, c) => ((v - delta(c, label)) * 0.75) / rows),
    );
    const scale = isIgnored ? 0 : (stored.rowGradient?.[r] as number);
    push(
      "noneGradient",
      p.map((v, c) => (v - delta(c, label)) * scale),
    );
  }
  return results;
}

describe("softmax and cross-entropy on the CPU", () => {
  it("equal a float64 computation", () => {
    const found = [...cases, shared].flatMap((attributes) => {
      const results = runOnCpu(operandsOf(attributes), launchesOf(attributes));
      return Object.entries(expected(attributes, results)).flatMap(([name, want]) =>
        mismatches(results[name as "softmax"], want, toleranceOf(attributes, 2)).map(
          (text) => `${title(attributes)} ${name}${text}`,
        ),
      );
    });
    expect(found).toEqual([]);
  });

  it("refuse a mean over rows of which some are ignored", () => {
    const attributes = { rows: 4, classes: 5, ignoreIndex: 1, reduction: "mean" } as const;
    expect(() =>
      runOnCpu(operandsOf({ rows: 4, columns: 5 }), (_, { input, labels, lossGradient, softmax }) =>
        softmaxCrossEntropyBackward(
          { logits: input, labels, lossGradient, logitsGradient: softmax },
          attributes,
        ),
      ),
    ).toThrow('use reduction "none"');
  });
});

describe.each(await testTiers())("softmax and cross-entropy on the GPU, %s tier", (tier) => {
  const compare = async (attributes: Case, operands = operandsOf(attributes)) => {
    const device = await requestTestDevice({ tier });
    return rowMismatches(device, attributes, operands);
  };

  it("equal the reference", async () => {
    const found: string[] = [];
    for (const attributes of cases) found.push(...(await compare(attributes)));
    expect(found).toEqual([]);
  });

  it("equal the reference where a subgroup shares long rows", async () => {
    // Programs take long to compile: one set on each tier.
    expect(await compare(tier !== "packed" ? shared : sharedQuads)).toEqual([]);
  });

  it.each([Number.NaN, Infinity, -Infinity])(
    "give what the reference gives for logits of %s, and NaN for labels that are no class",
    async (special) => {
      const found: string[] = [];
      for (const attributes of [
        cases[0],
        cases[1],
        ...(tier !== "packed" ? [shared] : []),
      ] as Case[]) {
        const operands = operandsOf(attributes);
        const { columns } = attributes;
        operands.input.values[2 * columns + 1] = special;
        operands.input.values.fill(special, 3 * columns, 4 * columns);
        operands.labels.values[4] = columns;
        found.push(...(await compare(attributes, operands)));
      }
      expect(found).toEqual([]);
    },
  );
});

describe("the WGSL of softmax", () => {
  const codesOf = (columns: number, dtype: DType, hardware = someGpu): readonly string[] => {
    const all = () => withoutMemory(100 * columns, dtype);
    const operands = { input: all(), out: all(), outGradient: all(), inputGradient: all() };
    return Object.values(
      programsOf({ tier: "native", subgroupSize: 32, hardware }, (target) => {
        target.launch(softmax(operands, { rows: 100, columns }));
        target.launch(softmaxBackward(operands, { rows: 100, columns }));
      }),
    );
  };

  it("moves 16 bytes at a time where storage has 16 bits and rows are whole pairs of quads", () => {
    for (const dtype of ["float16", "bfloat16"] as const)
      expect(codesOf(256, dtype).map((code) => code.split("array<vec4u>").length - 1)).toEqual([
        2, 3,
      ]);
    const software = { ...someGpu, class: "software" };
    for (const code of [
      ...codesOf(252, "float16"),
      ...codesOf(256, "float32"),
      ...codesOf(256, "float16", software),
    ])
      expect(code).not.toContain("array<vec4u>");
  });
});
