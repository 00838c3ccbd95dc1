import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
  type Launches,
  mismatches,
  runOnCpu,
  shareOf,
  testValues,
} from "../../test/harness.js";
import { crfLoss } from "./loss.js";
import { crfLossBackward } from "./loss-backward.js";
import { crfDecode } from "./viterbi.js";

interface Case {
  readonly batch: number;
  readonly length: number;
  readonly numTags: number;
  readonly dtype?: "float32" | "float16" | "bfloat16";
  /** Places of each sequence that count; default all. */
  readonly ends?: readonly number[];
}

/** Numbers that are exact in all dtypes, with some forbidden transitions, and NaN under the padding. */
function operandsOf({ batch, length, numTags, dtype = "float32", ends }: Case) {
  const isInside = (place: number): boolean =>
    place % length < (ends?.[Math.floor(place / length)] ?? length);
  const places = batch * length;
  const values = (count: number, seed: number): Float32Array =>
    testValues(count, seed).map((v) => v * 2);
  const transitions = values(numTags ** 2, 4).map((v, e) => (e % 7 === 5 ? -10_000 : v));
  const emissions = values(places * numTags, 1);
  const slopes = testValues(batch, 6);
  return {
    emissions: {
      values: emissions.map((v, e) => (isInside(Math.floor(e / numTags)) ? v : Number.NaN)),
      dtype,
    },
    start: { values: values(numTags, 2) },
    end: { values: values(numTags, 3) },
    transitions: { values: transitions },
    tags: {
      values: Uint32Array.from({ length: places }, (_, p) =>
        isInside(p) ? (p * 5 + (p % 3)) % numTags : 1e6,
      ),
      dtype: "uint32",
    },
    mask: {
      values: Uint32Array.from({ length: places }, (_, p) => (isInside(p) ? 1 : 0)),
      dtype: "uint32",
    },
    lossGradient: { values: slopes },
    losses: { values: batch },
    partitions: { values: batch },
    alphas: { values: places * numTags },
    emissionGradient: { values: places * numTags, dtype },
    startGradient: { values: numTags },
    endGradient: { values: numTags },
    transitionGradient: { values: numTags ** 2 },
    best: { values: places, dtype: "uint32" },
    scores: { values: batch },
  } as const;
}

const launches =
  (check: Case): Launches<ReturnType<typeof operandsOf>> =>
  (target, { tags, mask, losses, partitions, best, scores, ...rest }) => {
    const given = check.ends ? { ...rest, mask } : rest;
    target.launch(crfLoss({ ...given, losses: partitions }, check));
    target.launch(crfLoss({ ...given, tags, losses }, check));
    crfLossBackward(target, { ...given, tags }, check);
    crfDecode(target, { ...given, tags: best, scores }, check);
  };

/** By enumeration of all tags of every sequence. */
function enumerated(check: Case) {
  const { batch, length, numTags, ends } = check;
  const { emissions, start, end, transitions, tags, lossGradient } = operandsOf(check);
  const all = {
    losses: new Float64Array(batch),
    partitions: new Float64Array(batch),
    emissionGradient: new Float64Array(batch * length * numTags),
    startGradient: new Float64Array(numTags),
    endGradient: new Float64Array(numTags),
    transitionGradient: new Float64Array(numTags ** 2),
    best: new Float64Array(batch * length),
    scores: new Float64Array(batch),
  };
  const add = (to: Float64Array, at: number, value: number): void => {
    to[at] = (to[at] as number) + value;
  };
  for (let b = 0; b < batch; b++) {
    const count = ends?.[b] ?? length;
    const first = b * length;
    const scoreOf = (path: readonly number[]): number =>
      path.reduce(
        (sum, tag, t) => {
          const step =
            t === 0
              ? start.values[tag]
              : transitions.values[(path[t - 1] as number) * numTags + tag];
          return sum + (step as number) + (emissions.values[(first + t) * numTags + tag] as number);
        },
        end.values[path.at(-1) as number] as number,
      );
    const paths = Array.from({ length: numTags ** count }, (_, n) =>
      Array.from({ length: count }, (_, t) => Math.floor(n / numTags ** t) % numTags),
    );
    const given = [...tags.values.subarray(first, first + count)];
    const scores = paths.map(scoreOf);
    const top = Math.max(...scores);
    const partition = top + Math.log(scores.reduce((sum, score) => sum + Math.exp(score - top), 0));
    all.partitions[b] = partition;
    all.losses[b] = partition - scoreOf(given);
    all.scores[b] = top;
    const best = paths[scores.indexOf(top)] as readonly number[];
    for (let t = 0; t < length; t++) all.best[first + t] = best[Math.min(t, count - 1)] as number;
    const credit = (path: readonly number[], weight: number): void => {
      for (const [t, tag] of path.entries()) {
        add(all.emissionGradient, (first + t) * numTags + tag, weight);
        if (t === 0) add(all.startGradient, tag, weight);
        else add(all.transitionGradient, (path[t - 1] as number) * numTags + tag, weight);
      }
      add(all.endGradient, path.at(-1) as number, weight);
    };
    const slope = lossGradient.values[b] as number;
    for (const [n, path] of paths.entries())
      credit(path, slope * Math.exp((scores[n] as number) - partition));
    credit(given, -slope);
  }
  return all;
}

const tiny: readonly Case[] = [
  { batch: 1, length: 1, numTags: 1 },
  { batch: 3, length: 5, numTags: 3 },
  { batch: 5, length: 4, numTags: 4, ends: [4, 1, 3, 2, 4] },
  { batch: 2, length: 3, numTags: 5, ends: [3, 2], dtype: "float16" },
];

/** More tags than lanes, in whole quads and not, and many places. */
const large: readonly Case[] = [
  { batch: 9, length: 40, numTags: 9, ends: [40, 1, 7, 39, 25, 8, 40, 2, 3] },
  { batch: 3, length: 12, numTags: 70, ends: [12, 5, 1], dtype: "float16" },
  { batch: 2, length: 33, numTags: 12, dtype: "bfloat16" },
];

const within = (absolute: number) => ({ relative: absolute, absolute });
const tolerances = {
  losses: within(1e-5),
  partitions: within(1e-5),
  startGradient: within(1e-5),
  endGradient: within(1e-5),
  transitionGradient: within(3e-5),
  best: within(0),
  scores: within(0),
};

const tiers = await testTiers();

describe("conditional random fields", () => {
  it.each(["float32", "float64"] as const)("are what enumeration says, in %s", (arithmetic) => {
    const found = tiny.flatMap((check) => {
      const got = runOnCpu(operandsOf(check), launches(check), { arithmetic });
      const exact = within(arithmetic === "float64" ? 1e-12 : 3e-6);
      const half = arithmetic === "float32" && check.dtype ? within(2 ** -11) : exact;
      return Object.entries(enumerated(check)).flatMap(([name, want]) =>
        mismatches(
          got[name as keyof typeof got],
          want,
          name === "emissionGradient" ? half : exact,
        ).map((text) => `${name}${text} of ${JSON.stringify(check)}`),
      );
    });
    expect(found).toEqual([]);
  });

  it("give NaN for tags that are none, and for emissions that are NaN", () => {
    const check: Case = { batch: 2, length: 3, numTags: 3 };
    const operands = operandsOf(check);
    const broken = { ...operands.tags, values: operands.tags.values.with(1, 3) };
    const { losses } = runOnCpu({ ...operands, tags: broken }, launches(check));
    expect([...losses].map(Number.isNaN)).toEqual([true, false]);
  });

  it("refuse shapes without tags or places", () => {
    const binding = { buffer: 0, offset: 0, length: 0, dtype: "float32" } as const;
    const names = ["emissions", "start", "end", "transitions", "losses", "alphas"] as const;
    const operands = Object.fromEntries(names.map((name) => [name, binding])) as Record<
      (typeof names)[number],
      typeof binding
    >;
    expect(() => crfLoss(operands, { batch: 0, length: 0, numTags: 2 })).toThrow("0 places");
    expect(() => crfLoss(operands, { batch: 0, length: 1, numTags: 513 })).toThrow("1 to 512");
    expect(() => crfLoss(operands, { batch: 1, length: 1, numTags: 2 })).toThrow("need 2");
  });

  it.each(tiers)("equal the reference on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    // Programs take long to compile: between them the tiers have each.
    for (const check of shareOf(large, tier, tiers))
      found.push(
        ...(await deviceMismatches(device, operandsOf(check), launches(check), {
          ...tolerances,
          emissionGradient: within(
            check.dtype === "bfloat16" ? 2 ** -8 : check.dtype ? 2 ** -11 : 1e-5,
          ),
        })),
      );
    expect(found).toEqual([]);
  });

  it("passes NaN and forbidden starts on, on the GPU", async () => {
    const device = await requestTestDevice();
    const check: Case = { batch: 9, length: 40, numTags: 9, ends: [40, 1, 7, 39, 25, 8, 40, 2, 3] };
    const operands = operandsOf(check);
    const emissions = {
      ...operands.emissions,
      values: operands.emissions.values.with(20, Number.NaN),
    };
    const start = { values: operands.start.values.with(2, -Infinity) };
    const tags = { ...operands.tags, values: operands.tags.values.with(80, 9) };
    const changed = { ...operands, emissions, start, tags };
    expect(
      await deviceMismatches(device, changed, launches(check), {
        losses: within(1e-5),
        scores: within(0),
        best: within(0),
      }),
    ).toEqual([]);
  });
});
