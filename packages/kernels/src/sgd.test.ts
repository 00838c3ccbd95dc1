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
import { sgd } from "./sgd.js";

type Floating = "float32" | "float16" | "bfloat16";

interface Case {
  readonly length: number;
  readonly values?: Floating;
  readonly copy?: Floating;
  readonly momentum?: number;
  readonly dampening?: number;
  readonly nesterov?: boolean;
  readonly weightDecay?: number;
  readonly maximize?: boolean;
  readonly isFirst?: boolean;
}

const cases: readonly Case[] = [
  { length: 1 },
  { length: 1027, weightDecay: 0.25, maximize: true },
  { length: 259, momentum: 0.9, dampening: 0.5, weightDecay: 0.25 },
  { length: 259, momentum: 0.9, dampening: 0.5, isFirst: true },
  { length: 70_002, momentum: 0.9, nesterov: true, weightDecay: 0.25, maximize: true },
  { length: 7, momentum: 0.9, nesterov: true, isFirst: true, values: "float16" },
  { length: 6, values: "bfloat16" },
  { length: 130, momentum: 0.9, copy: "bfloat16" },
  { length: 131, copy: "float16" },
];

const lr = 2 ** -4;
const inverse = 2 ** -3;

const attributesOf = (c: Case) => ({
  momentum: c.momentum ?? 0,
  dampening: c.dampening ?? 0,
  nesterov: c.nesterov ?? false,
  weightDecay: c.weightDecay ?? 0,
  maximize: c.maximize ?? false,
});

const operandsOf = ({ length, values, copy, momentum, isFirst }: Case, skips = false) => ({
  values: { values: testValues(length, 1), dtype: values ?? "float32" },
  gradients: { values: testValues(length, 2) },
  control: { values: [skips ? 0 : 1, inverse, lr, isFirst ? 1 : 0, lr, 0, 0, 0] },
  ...(momentum && { momentumBuffer: { values: testValues(length, 3) } }),
  ...(copy && { copy: { values: testValues(length, 4), dtype: copy } }),
});

/** torch's documentation of SGD, line by line, in float64. */
function expected(c: Case, operands: ReturnType<typeof operandsOf>) {
  const { momentum, dampening, nesterov, weightDecay, maximize } = attributesOf(c);
  const values: number[] = [];
  const buffer: number[] = [];
  for (let i = 0; i < c.length; i++) {
    const p = operands.values.values[i] as number;
    let g = (operands.gradients.values[i] as number) * inverse;
    if (maximize) g = -g;
    if (weightDecay !== 0) g += weightDecay * p;
    if (operands.momentumBuffer) {
      const old = operands.momentumBuffer.values[i] as number;
      const b = c.isFirst ? g : momentum * old + (1 - dampening) * g;
      buffer.push(b);
      g = nesterov ? g + momentum * b : b;
    }
    values.push(p - lr * g);
  }
  return { values, buffer };
}

const title = (c: Case): string => JSON.stringify(c);
const single = { relative: 2 ** -22, absolute: 2 ** -24 };
const tolerance = (dtype: Floating = "float32") =>
  dtype === "float32" ? single : { relative: 2.1 * unitRoundoff[dtype], absolute: 2 ** -24 };

describe("sgd on the CPU", () => {
  it("computes one step of torch's SGD", () => {
    const found = cases.flatMap((c) => {
      const operands = operandsOf(c);
      const results = runOnCpu(operands, (target, bindings) =>
        target.launch(sgd(bindings, attributesOf(c))),
      );
      const want = expected(c, operands);
      return [
        ...mismatches(results.values, want.values, tolerance(c.values)),
        ...mismatches(results.momentumBuffer ?? [], want.buffer, single),
        ...(results.copy ? mismatches(results.copy, want.values, tolerance(c.copy)) : []),
      ].map((text) => `${title(c)} ${text}`);
    });
    expect(found).toEqual([]);
  });
});

describe.each(await testTiers())("sgd on the GPU, %s tier", (tier) => {
  it("equals the reference", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const c of cases) {
      const texts = await deviceMismatches(
        device,
        operandsOf(c),
        (target, bindings) => target.launch(sgd(bindings, attributesOf(c))),
        { values: tolerance(c.values), momentumBuffer: single, copy: tolerance(c.copy) },
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
      operands.gradients.values.fill(Number.POSITIVE_INFINITY);
      const results = await runOnGpu(device, operands, (target, bindings) =>
        target.launch(sgd(bindings, attributesOf(c))),
      );
      for (const name of ["values", "momentumBuffer", "copy"] as const) {
        const before = operands[name]?.values;
        if (before)
          found.push(
            ...mismatches(results[name] ?? [], before, { relative: 0, absolute: 0 }).map(
              (text) => `${title(c)} ${name}${text}`,
            ),
          );
      }
    }
    expect(found).toEqual([]);
  });
});
