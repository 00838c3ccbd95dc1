import { GradScaler } from "@halfstep/grad-scaler";
import { cpuTarget } from "@halfstep/kernels";
import { ampPrimitives } from "@halfstep/kernels/amp";
import { describe, expect, test } from "vitest";
import {
  AdamW,
  clipGradNorm,
  ExponentialMovingAverage,
  type FlatTensors,
  flatTensors,
  LAMB,
  Muon,
  type Segment,
  SGD,
} from "../src/index.js";
import { type AnyTarget, targets } from "./targets.js";

const count = 384;
const cpu = cpuTarget() as AnyTarget;

/** Flat parameters over buffers of the caller's own. */
const own = (
  target: AnyTarget,
  segments: readonly Segment[],
  more: Partial<FlatTensors<object>> = {},
): FlatTensors<object> => ({
  values: target.allocate(count * 4),
  gradients: target.allocate(count * 4),
  dtype: "float32",
  segments,
  ...more,
});

const all = (buffer: object) => ({ buffer, offset: 0, length: count, dtype: "float32" }) as const;

const segment = (name: string, offset: number, ...shape: number[]): Segment => ({
  name,
  offset,
  shape,
});

describe("the layout of flat parameters", () => {
  const refused: readonly [string, readonly Segment[], Partial<FlatTensors<object>>, RegExp][] = [
    ["an odd offset", [segment("a", 0, 15), segment("b", 15, 7)], {}, /b starts at element 15/],
    ["a negative offset", [segment("a", -4, 4)], {}, /a starts at element -4/],
    ["a broken offset", [segment("a", 1.5, 4)], {}, /a starts at element 1\.5/],
    ["a missing offset", [{ name: "a", shape: [4] } as never], {}, /element undefined/],
    ["overlapping segments", [segment("b", 4, 4), segment("a", 0, 8)], {}, /a and b overlap/],
    ["a broken size", [segment("a", 0, 2.5)], {}, /a has the shape \[2\.5\]/],
    ["values that end", [segment("a", 0, 385)], {}, /1540 bytes of values, .* has 1536/],
    [
      "gradients that end",
      [segment("a", 0, 385)],
      { values: cpu.allocate(2048) },
      /1540 bytes of gradients/,
    ],
    ["a segment after a gap", [segment("a", 0, 4), segment("b", 8, 4)], {}, /follows a gap/],
    ["a first segment in the middle", [segment("a", 8, 4)], {}, /multiple of 64/],
    [
      "16-bit values after a gap",
      [segment("a", 0, 4), segment("b", 64, 4)],
      { dtype: "bfloat16" },
      /multiple of 128/,
    ],
    [
      "segments that may be absent",
      [segment("a", 0, 4), segment("b", 4, 4)],
      { hasGradient: () => true },
      /hasGradient .* multiple of 64/,
    ],
    ["another alignment", [segment("a", 0, 4), segment("b", 64, 4)], { alignment: 128 }, /of 128/],
    ["a broken alignment", [segment("a", 0, 4)], { alignment: 2 }, /alignment .* is 2/],
  ];
  test.each(refused)("%s is refused", (_, segments, more, message) => {
    const make = () => new AdamW(cpu, own(cpu, segments, more));
    expect(make).toThrow(RangeError);
    expect(make).toThrow(message);
  });

  test("other dtypes and things that are no segments are refused", () => {
    const of = (segments: readonly Segment[], dtype: string) => () =>
      new SGD(cpu, own(cpu, segments, { dtype: dtype as "float32" }), { lr: 1 });
    expect(of([segment("a", 0, 4)], "float8e4m3fn")).toThrow(
      new TypeError(
        'parameters are stored as "float8e4m3fn": optimizers update float32, float16, bfloat16',
      ),
    );
    expect(of([null as never], "float32")).toThrow(TypeError);
    expect(of([segment("a", 0, 4), segment("a", 4, 4)], "float32")).toThrow(/named a/);
  });

  test("Muon needs matrices that can be bound alone", () => {
    const flat = own(cpu, [segment("a", 0, 3, 5), segment("b", 16, 2, 2)]);
    expect(() => new Muon(cpu, flat)).toThrow(
      /b starts at element 16 .*Muon multiplies each matrix alone.*64/,
    );
    new Muon(cpu, own(cpu, [segment("a", 0, 3, 5), segment("b", 64, 2, 2)]));
  });

  test.each(["float32", "bfloat16"] as const)("flatTensors of %s are one part", (dtype) => {
    const shapes = { a: [1], b: [64], c: [0], d: [127], e: [64] };
    const optimizer = new SGD(cpu, flatTensors(cpu, shapes, { dtype }), { lr: 1 });
    expect([...optimizer.gradients()]).toHaveLength(1);
  });

  test("added groups are checked, too", () => {
    const optimizer = new AdamW(cpu, own(cpu, [segment("a", 0, 4)]));
    expect(() =>
      optimizer.addParamGroup({ params: own(cpu, [segment("b", 0, 15), segment("c", 15, 1)]) }),
    ).toThrow(/c starts at element 15/);
    expect(optimizer.paramGroups).toHaveLength(1);
  });
});

describe.each(await targets())("gaps between segments on the %s", (_, makeTarget) => {
  const [first, second] = [segment("a", 0, 64), segment("c", 128, 61)];
  const inSegments = (i: number): boolean => i < 64 || (i >= 128 && i < 192);

  test("what lies in a gap is neither trained nor clipped nor checked", async () => {
    const target = await makeTarget();
    const flat = own(target, [first, second]);
    const gradients = Float32Array.from({ length: count }, (_, i) => (inSegments(i) ? 0 : 5));
    gradients[100] = Number.NaN;
    target.write(all(flat.values), new Float32Array(count).fill(1));
    target.write(all(flat.gradients), gradients);
    const optimizer = new AdamW(target, flat, { lr: 0.1, weightDecay: 0.5, clipGradNorm: 1 });
    expect(await clipGradNorm(optimizer, 1).read()).toBe(0);
    const scaler = new GradScaler(ampPrimitives(target));
    scaler.assumeScaled(optimizer);
    scaler.step(optimizer);
    scaler.update();
    expect(await optimizer.appliedSteps()).toEqual([1]);
    optimizer.zeroGrad();
    const values = await target.read(all(flat.values));
    for (const [i, value] of values.entries())
      if (i < 189 || i >= 192) expect(value).toBe(inSegments(i) ? Math.fround(0.95) : 1);
    const left = await target.read(all(flat.gradients));
    expect([...left].filter((_, i) => i < 189 || i >= 192)).toEqual(
      [...gradients].map((g, i) => (inSegments(i) ? 0 : g)).filter((_, i) => i < 189 || i >= 192),
    );
  });

  test("averages leave it alone", async () => {
    const target = await makeTarget();
    const flat = own(target, [first, second]);
    const gap = { ...all(flat.values), offset: 256, length: 64 } as const;
    const optimizer = new SGD(target, flat, { lr: 1 });
    const average = new ExponentialMovingAverage(optimizer, { decay: 0.5 });
    target.write(gap, new Float32Array(64).fill(2));
    await average.during(async () => {
      expect([...(await target.read(gap))]).toEqual(Array(64).fill(2));
      target.write(gap, new Float32Array(64).fill(3));
    });
    expect([...(await target.read(gap))]).toEqual(Array(64).fill(3));
  });

  test("parameters at multiples of 4 are updated as those far apart", async () => {
    const target = await makeTarget();
    const run = async (at: number): Promise<number[]> => {
      const flat = own(target, [segment("a", 0, 15), segment("b", at, 7)]);
      const place = (a: (i: number) => number, b: (i: number) => number): Float32Array => {
        const x = new Float32Array(count);
        for (let i = 0; i < 15; i++) x[i] = a(i);
        for (let i = 0; i < 7; i++) x[at + i] = b(i);
        return x;
      };
      target.write(all(flat.values), place(Math.sin, Math.cos));
      const optimizer = new LAMB(target, flat, { lr: 0.1 });
      target.write(
        all(flat.gradients),
        place(Math.cos, (i) => 100 * Math.sin(i)),
      );
      optimizer.step();
      return [...(await target.read(all(flat.values)))].slice(at, at + 7);
    };
    expect(await run(16)).toEqual(await run(64));
  });
});
