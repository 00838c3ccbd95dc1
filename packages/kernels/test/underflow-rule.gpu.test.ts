import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import {
  EXPONENT_BINS,
  EXPONENT_WORDS,
  scalerRule,
  underflowShare,
  underflowShift,
} from "@halfstep/grad-scaler";
import {
  scaleRuleFields,
  scaleRuleValues,
  scaleRuleWgsl,
  underflowWgsl,
} from "@halfstep/grad-scaler/wgsl";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defineKernel, linearMain, linearWorkgroups } from "../src/kernel.js";
import { runOnGpu } from "./harness.js";

const histograms = 1000;

/** Invocation i decides by histogram i. */
const decide = defineKernel({
  name: "decide-by-underflow",
  bindings: [
    { name: "histograms", access: "read", unit: 1, dtypes: ["uint32"] },
    { name: "shifts", access: "write", unit: 1, dtypes: ["int32"] },
    { name: "shares", access: "write", unit: 1, dtypes: ["float32"] },
  ],
  scalars: scaleRuleFields.map((field) => ({ ...field, runtime: true })),
  body: () => `var<private> first: u32;
fn at_exponents(field: u32) -> u32 { return at_histograms(first + field); }
${scaleRuleWgsl}${underflowWgsl}
${linearMain()}
  if (index >= ${histograms}u) { return; }
  first = index * ${EXPONENT_WORDS}u;
  let rule = ScaleRule(${scaleRuleFields.map(({ name }) => `s.${name}`).join(", ")});
  store_shifts(index, underflowShift(rule));
  store_shares(index, underflowShare(rule));
}
`,
  workgroups: () => linearWorkgroups(histograms),
  reference: () => {},
});

const countOf = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 0, max: 9 }),
  fc.integer({ min: 0, max: 1e6 }),
);
const float32Bits = fc
  .float({ min: 0, noNaN: true })
  .map((value) => new Uint32Array(Float32Array.of(value).buffer)[0] as number);
/** Counts of a few exponents, and what stores tell: how many they lost, found as zeros, the largest, how many in all. */
const histogram = fc
  .record({
    counts: fc.array(fc.tuple(fc.integer({ min: 0, max: EXPONENT_BINS - 1 }), countOf), {
      maxLength: 12,
    }),
    ...{ lost: countOf, zeros: countOf, largest: float32Bits, others: countOf },
  })
  .map(({ counts, lost, zeros, largest, others }) => {
    const words = new Uint32Array(EXPONENT_WORDS);
    for (const [field, count] of counts) words[field] = count;
    words.set([lost, zeros, largest, zeros + lost + others], EXPONENT_BINS);
    return words;
  });

describe.each(await testTiers())("decisions by underflow, %s tier", (tier) => {
  it.each([
    ["float16", 0],
    ["float16", 0.01],
    ["float16", 0.5],
    ["bfloat16", 0.01],
  ] as const)("are those of the host: %s, target %d", async (format, target) => {
    const device = await requestTestDevice({ tier });
    const drawn = fc.sample(histogram, { numRuns: histograms });
    const values = Uint32Array.from(drawn.flatMap((words) => [...words]));
    const rule = {
      ...scalerRule(undefined, { targetUnderflow: target || 0.5 }),
      ...{ targetUnderflow: target, underflowFormat: format },
    };
    const { shifts, shares } = await runOnGpu(
      device,
      {
        histograms: { values, dtype: "uint32" },
        shifts: { values: histograms, dtype: "int32" },
        shares: { values: histograms },
      },
      (target, { histograms, shifts, shares }) =>
        target.launch({
          kernel: decide,
          bindings: [histograms, shifts, shares],
          scalars: scaleRuleValues(rule),
        }),
    );
    const wanted = drawn.map((words) => underflowShift(words, target, format));
    expect([...shifts]).toEqual(wanted);
    expect(new Set(wanted).size).toBeGreaterThan(2);
    const errors = drawn.map((words, i) =>
      Math.abs((shares[i] as number) - underflowShare(words, format)),
    );
    expect(Math.max(...errors)).toBeLessThan(1e-6);
  });
});
