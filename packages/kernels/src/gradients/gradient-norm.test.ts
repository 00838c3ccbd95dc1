import type { Binding, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { deviceMismatches, runOnCpu, runOnGpu, testValues } from "../../test/harness.js";
import { clampGradients, clipGradients } from "./clip-gradients.js";
import { gradientNorm } from "./gradient-norm.js";

interface Case {
  readonly lengths: readonly [number, number];
  readonly maxNorm: number;
  readonly normType?: number;
  readonly dtype?: "float32" | "float16" | "bfloat16";
}

const cases: readonly Case[] = [
  { lengths: [1, 1], maxNorm: 0.1 },
  { lengths: [5, 70_003], maxNorm: 1 },
  { lengths: [300_001, 3], maxNorm: 1e9 },
  { lengths: [5, 70_003], maxNorm: 0.01, normType: Infinity },
  { lengths: [5, 70_003], maxNorm: 1, normType: 1 },
  { lengths: [1027, 2], maxNorm: 0.5, normType: 1, dtype: "float16" },
  { lengths: [5, 70_003], maxNorm: 0.1, normType: 3 },
  { lengths: [3, 1027], maxNorm: 100, normType: 1.5 },
  { lengths: [1027, 2], maxNorm: 1, dtype: "float16" },
  { lengths: [1027, 2], maxNorm: 1, normType: Infinity, dtype: "bfloat16" },
];

const inverse = 2 ** -4;

const operandsOf = ({ lengths: [a, b], dtype = "float32" }: Case) => ({
  a: { values: testValues(a, 1), dtype },
  b: { values: testValues(b, 2), dtype },
  scale: { values: [1 / inverse, inverse] },
  norm: { values: 2 },
});

type Operands = ReturnType<typeof operandsOf>;

const launches =
  ({ maxNorm, normType = 2 }: Case) =>
  <B>(
    target: LaunchTarget<B>,
    { a, b, scale, norm }: { readonly [name in keyof Operands]: Binding<B> },
  ): void => {
    const gradients = [a, b];
    gradientNorm(
      target,
      { gradients, scale: scale.buffer, norm: norm.buffer },
      { maxNorm, normType },
    );
    for (const x of gradients) target.launch(clipGradients({ x, norm: norm.buffer }));
  };

const title = (c: Case): string => JSON.stringify(c);
const tolerance = { relative: 2 ** -19, absolute: 0 };
const stored = { relative: 2 ** -7, absolute: 0 };

describe("gradientNorm and clipGradients on the CPU", () => {
  it("refuse what is no norm", () => {
    const c: Case = { lengths: [1, 1], maxNorm: 1, normType: 0 };
    expect(() => runOnCpu(operandsOf(c), launches(c))).toThrow("normType is 0");
  });

  it("clip as torch does, by the norm of unscaled gradients", () => {
    const found = cases.map((c) => {
      const operands = operandsOf(c);
      const { norm, a } = runOnCpu(operands, launches(c));
      const all = [...operands.a.values, ...operands.b.values].map((v) => Math.abs(v * inverse));
      const want =
        c.normType === Infinity
          ? all.reduce((x, y) => Math.max(x, y), 0)
          : all.reduce((x, y) => x + y ** (c.normType ?? 2), 0) ** (1 / (c.normType ?? 2));
      const factor = Math.min(1, c.maxNorm / (want + 1e-6));
      const last = (operands.a.values.at(-1) as number) * factor;
      const near = (x: number | undefined, y: number, part: number): boolean =>
        Math.abs((x as number) - y) <= part * Math.abs(y);
      return (
        near(norm[0], want, 1e-6) && near(norm[1], factor, 1e-6) && near(a.at(-1), last, 2 ** -7)
      );
    });
    expect(found).toEqual(cases.map(() => true));
  });
});

describe.each(await testTiers())("gradientNorm and clipGradients on the GPU, %s tier", (tier) => {
  it("equal the references", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const c of cases) {
      const values = c.dtype ? stored : tolerance;
      const texts = await deviceMismatches(device, operandsOf(c), launches(c), {
        norm: tolerance,
        a: values,
        b: values,
      });
      found.push(...texts.map((text) => `${title(c)} ${text}`));
    }
    expect(found).toEqual([]);
  });

  it("give factor 0 for an infinite norm and NaN for a NaN, and leave zeros as they are", async () => {
    const device = await requestTestDevice({ tier });
    const found: unknown[] = [];
    for (const normType of [2, Infinity, 1, 3] as const)
      for (const bad of [Number.NEGATIVE_INFINITY, Number.NaN]) {
        const c: Case = { lengths: [100, 259], maxNorm: 1, normType };
        const operands = operandsOf(c);
        operands.b.values[258] = bad;
        operands.a.values.fill(0, 40, 47);
        for (const { norm, a } of [
          await runOnGpu(device, operands, launches(c)),
          runOnCpu(operands, launches(c)),
        ])
          found.push([...norm, ...a.subarray(40, 47)]);
      }
    const each = [Infinity, Infinity, Number.NaN, Number.NaN].map((norm) => [
      norm,
      norm === Infinity ? 0 : norm,
      ...new Array(7).fill(0),
    ]);
    expect(found).toEqual([...each, ...each, ...each, ...each]);
  });

  it("clamp to the limit times the scale, and leave NaN", async () => {
    const device = await requestTestDevice({ tier });
    const values = testValues(259, 3);
    values.set([Number.NaN, Infinity, -Infinity, 8, -8, 0, -0]);
    for (const dtype of ["float32", "float16"] as const) {
      const operands = { x: { values, dtype }, scale: { values: [16, 1 / 16] } };
      const clamp = <B>(
        target: LaunchTarget<B>,
        { x, scale }: { readonly x: Binding<B>; readonly scale: Binding<B> },
      ): void => target.launch(clampGradients({ x, scale: scale.buffer }, { limit: 0.03125 }));
      const { x } = await runOnGpu(device, operands, clamp);
      expect(x).toEqual(runOnCpu(operands, clamp).x);
      expect([...x.subarray(0, 7)]).toEqual([Number.NaN, 0.5, -0.5, 0.5, -0.5, 0, -0]);
    }
  });

  it("give the same bits each time", async () => {
    const device = await requestTestDevice({ tier });
    const norms = new Set<string>();
    const c: Case = { lengths: [40_001, 77], maxNorm: 1 };
    const operands = operandsOf(c);
    const values = operands.a.values.map((v, i) => v * Math.sin(i));
    for (let i = 0; i < 3; i++) {
      const { norm } = await runOnGpu(
        device,
        { ...operands, a: { ...operands.a, values } },
        launches(c),
      );
      norms.add([...norm].join());
    }
    expect(norms.size).toBe(1);
  });
});
