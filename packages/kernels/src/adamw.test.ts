import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
  mismatches,
  runOnCpu,
  runOnGpu,
  testValues,
  unitRoundoff,
} from "../test/harness.js";
import { adamw } from "./adamw.js";

type Floating = "float32" | "float16" | "bfloat16";

interface Case {
  readonly length: number;
  readonly values: Floating;
  readonly gradients: Floating;
  readonly amsgrad?: boolean;
  /** Values are float32 masters of this copy. */
  readonly copy?: Floating;
  readonly maximize?: boolean;
}

const cases: readonly Case[] = [
  { length: 1, values: "float32", gradients: "float32" },
  { length: 1027, values: "float32", gradients: "float32" },
  { length: 70_006, values: "float32", gradients: "float16" },
  { length: 5, values: "float16", gradients: "float32" },
  { length: 259, values: "bfloat16", gradients: "bfloat16" },
  { length: 130, values: "float32", gradients: "float32", amsgrad: true, maximize: true },
  { length: 131, values: "float32", gradients: "float32", copy: "float16" },
  { length: 9, values: "float32", gradients: "float32", copy: "bfloat16", amsgrad: true },
];

const lr = 2 ** -6;
const inverse = 2 ** -3;
const corrections = [1.5, 3.25] as const;
const attributes = { betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0.1 } as const;

function operandsOf({ length, values, gradients, amsgrad, copy }: Case, skips = false) {
  // Away from 0, so that no step is so much larger than its value that little of either is left.
  const magnitudes = (seed: number) => testValues(length, seed).map((v) => v * v + 2 ** -6);
  return {
    values: { values: testValues(length, 1), dtype: values },
    gradients: {
      values: testValues(length, 2).map((v, i) => (i % 7 === 3 ? 0 : v)),
      dtype: gradients,
    },
    expAvg: { values: testValues(length, 3) },
    expAvgSq: { values: magnitudes(4) },
    control: { values: [skips ? 0 : 1, inverse, lr, 0, lr, ...corrections, 0] },
    ...(amsgrad && { maxExpAvgSq: { values: magnitudes(5) } }),
    ...(copy && { copy: { values: testValues(length, 6), dtype: copy } }),
  };
}

type Operands = ReturnType<typeof operandsOf>;

/** torch's documentation of AdamW, line by line, in float64. */
function expected({ values, gradients, expAvg, expAvgSq, maxExpAvgSq }: Operands, sign: number) {
  const [beta1, beta2] = attributes.betas;
  const result = {
    values: [] as number[],
    expAvg: [] as number[],
    expAvgSq: [] as number[],
    maxExpAvgSq: [] as number[],
  };
  for (let i = 0; i < values.values.length; i++) {
    const g = sign * (gradients.values[i] as number) * inverse;
    let p = values.values[i] as number;
    p -= lr * attributes.weightDecay * p;
    const m = beta1 * (expAvg.values[i] as number) + (1 - beta1) * g;
    const v = beta2 * (expAvgSq.values[i] as number) + (1 - beta2) * g ** 2;
    const u = Math.max(v, maxExpAvgSq?.values[i] ?? 0);
    p -= (lr * (m * corrections[0])) / (Math.sqrt(u) * corrections[1] + attributes.eps);
    result.values.push(p);
    result.expAvg.push(m);
    result.expAvgSq.push(v);
    result.maxExpAvgSq.push(u);
  }
  return result;
}

const title = (c: Case): string => JSON.stringify(c);
const single = { relative: 2 ** -22, absolute: 2 ** -25 };
const tolerance = (dtype: Floating = "float32") =>
  dtype === "float32" ? single : { relative: 2.1 * unitRoundoff[dtype], absolute: 2 ** -25 };

describe("adamw on the CPU", () => {
  it("computes one step of torch's AdamW", () => {
    const found = cases.flatMap((c) => {
      const { maximize = false } = c;
      const operands = operandsOf(c);
      const results = runOnCpu(operands, (target, bindings) =>
        target.launch(adamw(bindings, { ...attributes, maximize })),
      );
      const want = expected(operands, maximize ? -1 : 1);
      return [
        ...mismatches(results.values, want.values, tolerance(c.values)),
        ...mismatches(results.expAvg, want.expAvg, single),
        ...mismatches(results.expAvgSq, want.expAvgSq, single),
        ...(results.maxExpAvgSq ? mismatches(results.maxExpAvgSq, want.maxExpAvgSq, single) : []),
        ...(results.copy ? mismatches(results.copy, want.values, tolerance(c.copy)) : []),
      ].map((text) => `${title(c)} ${text}`);
    });
    expect(found).toEqual([]);
  });

  it("names an operand of another length", () => {
    const operands = { ...operandsOf(cases[1] as Case), expAvg: { values: 5 } };
    expect(() =>
      runOnCpu(operands, (target, bindings) => target.launch(adamw(bindings, attributes))),
    ).toThrow("adamw: expAvg has 5 elements, but the attributes need 1027");
  });
});

describe.each(await testTiers())("adamw on the GPU, %s tier", (tier) => {
  it("equals the reference", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const c of cases) {
      const { maximize = false } = c;
      const texts = await deviceMismatches(
        device,
        operandsOf(c),
        (target, bindings) => target.launch(adamw(bindings, { ...attributes, maximize })),
        {
          values: tolerance(c.values),
          expAvg: single,
          expAvgSq: single,
          maxExpAvgSq: single,
          copy: tolerance(c.copy),
        },
      );
      found.push(...texts.map((text) => `${title(c)} ${text}`));
    }
    expect(found).toEqual([]);
  });

  it("changes no bit of a skipped step, whatever the gradients are", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const c of cases) {
      const operands = operandsOf(c, true);
      operands.gradients.values.fill(Number.NaN);
      const results = await runOnGpu(device, operands, (target, bindings) =>
        target.launch(adamw(bindings, attributes)),
      );
      const exact = { relative: 0, absolute: 0 };
      for (const name of ["values", "expAvg", "expAvgSq", "maxExpAvgSq", "copy"] as const) {
        const before = operands[name]?.values;
        if (before)
          found.push(
            ...mismatches(results[name] ?? [], before, exact).map(
              (text) => `${title(c)} ${name}${text}`,
            ),
          );
      }
    }
    expect(found).toEqual([]);
  });
});
