import { cpuTarget } from "@halfstep/kernels";
import { describe, expect, test } from "vitest";
import {
  Adafactor,
  AdamW,
  BertAdam,
  clipGradNorm,
  ExponentialMovingAverage,
  flatTensors,
  LAMB,
  LARC,
  LostUpdateMeter,
  Muon,
  NovoGrad,
  SGD,
  type Shard,
  ShardError,
} from "../src/index.js";
import type { AnyTarget } from "./targets.js";

// What shards are for is tested in `distributed`: here, one rank has the second of two parts.

const target = cpuTarget() as AnyTarget;

/** Flat parameters of 384 elements, of which the middle third is a shard. */
function sharded() {
  const params = flatTensors(target, { weight: [128], other: [16, 16] });
  const buffer = target.allocate(16);
  let shared = 0;
  const shard: Shard<object> = {
    parts: [{ offset: 128, length: 128, at: 0 }],
    others: { buffer, offset: 0, length: 4, dtype: "float32" },
    share: () => void shared++,
    collect: async (own) => own,
  };
  return { params: { ...params, shard }, others: shard.others, shared: () => shared };
}

const all = (params: { readonly values: object }) =>
  ({ buffer: params.values, offset: 0, length: 384, dtype: "float32" }) as const;

describe("a shard", () => {
  test("is all that a step changes, and is passed on", async () => {
    const { params, others, shared } = sharded();
    const optimizer = new SGD(target, params, { lr: 1, clipGradNorm: 1 });
    target.write({ ...all(params), buffer: params.gradients }, new Float32Array(384).fill(3));
    // Gradients of all others, whose norm makes 128 · 3² one half of the square.
    target.write(others, [Math.sqrt(128 * 9), 0, 0, 0]);
    optimizer.step();
    const values = await target.read(all(params));
    const step = -3 / (Math.sqrt(2 * 128 * 9) + 1e-6);
    for (const i of values.keys()) expect(values[i]).toBeCloseTo(i >= 128 && i < 256 ? step : 0, 6);
    expect(shared()).toBe(1);
    expect([...optimizer.gradients()].map(({ length }) => length)).toEqual([128, 4]);
  });

  test.each([
    ["LAMB", LAMB],
    ["BertAdam", BertAdam],
    ["NovoGrad", NovoGrad],
    ["Adafactor", Adafactor],
    ["Muon", Muon],
  ] as const)("is refused by %s, which needs whole parameters", (name, Optimizer) => {
    expect(() => new (Optimizer as typeof LAMB)(target, sharded().params, {})).toThrow(ShardError);
    expect(() => new (Optimizer as typeof LAMB)(target, sharded().params, {})).toThrow(
      `${name} needs whole parameters`,
    );
  });

  test("is refused by what reads whole parameters or gradients", () => {
    const optimizer = new AdamW(target, sharded().params, {});
    for (const refused of [
      () => new AdamW(target, sharded().params, { moments: "int8" }),
      () => new LARC(new SGD(target, sharded().params, { lr: 1 })),
      () => new ExponentialMovingAverage(optimizer, { decay: 0.9 }),
      () => new LostUpdateMeter(optimizer),
      () => clipGradNorm(optimizer, 1, { normType: Number.POSITIVE_INFINITY }),
    ])
      expect(refused).toThrow(ShardError);
  });
});
