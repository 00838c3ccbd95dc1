import type { Binding, DType, Launch, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  type Results,
  runOnCpu,
  runOnGpu,
  testValues,
  withoutSubgroups,
} from "../../test/harness.js";
import { attention } from "./forward.js";
import { type HeadLayout, type HeadPlace, headsOf, withHeadCount, withHeads } from "./heads.js";
import { attentionKeyValueGradient } from "./key-value-gradient.js";
import { attentionQueryGradient } from "./query-gradient.js";
import { type AttentionAttributes, attentionMask } from "./shape.js";
import { attentionStatistics } from "./statistics.js";

interface Case {
  readonly batch: number;
  readonly heads: number;
  /** Heads of queries that share a head of keys and values. Default 1. */
  readonly group?: number;
  readonly queries: number;
  readonly keys: number;
  readonly size: number;
  /** Default: size. */
  readonly width?: number;
  readonly isCausal?: boolean;
  /** Lengths of the sequences of keys, one of them 0. */
  readonly hasPadding?: boolean;
  readonly p?: number;
  readonly storage?: DType;
  /** Default true. */
  readonly hasSubgroups?: boolean;
}

const attributesOf = (test: Case): AttentionAttributes => {
  const { batch, heads, group, queries, keys, size, width = size } = test;
  const { isCausal, hasPadding, p } = test;
  return {
    group,
    ...{ entries: batch * heads, queries, keys, size, width, scale: 0.5 },
    ...(isCausal && { isCausal }),
    ...(hasPadding && { mask: attentionMask("lengths", [batch, 1], [batch, heads]) }),
    ...(p !== undefined && { dropout: { p, source: { seed: 7, block: 3, stream: 1 } } }),
  };
};

/** Heads of queries, or of keys and values. */
interface Heads {
  readonly batch: number;
  readonly heads: number;
}

const sharedHeads = ({ batch, heads, group = 1 }: Case): Heads => ({ batch, heads: heads / group });

/** Elements before the first token, and behind each: strides of whole quads that are not those of the heads alone. */
const gap = 8;

/** The layouts of tensors [batch, tokens, …] with the heads of each part after those of the previous part. */
function layoutsOf({ batch, heads }: Heads, tokens: number, parts: readonly number[]) {
  const token = heads * parts.reduce((a, b) => a + b, 0) + gap;
  let start = gap;
  const layouts = parts.map((size): HeadLayout => {
    start += heads * size;
    return { start: start - heads * size, batch: tokens * token, head: size, token };
  });
  return { length: gap + batch * tokens * token, layouts };
}

/**
 * All operands twice: with contiguous heads, and in the layout of projections [batch, tokens, features]. Results of rows that
 * are not whole quads are stored in scratch memory, contiguous in both cases.
 */
function placesOf(test: Case) {
  const { batch, heads, queries, keys, size, width = size } = test;
  const sides = {
    queries: layoutsOf(test, queries, [size]),
    keysValues: layoutsOf(sharedHeads(test), keys, [size, width]),
    outGradient: layoutsOf(test, queries, [width]),
  };
  const [query] = sides.queries.layouts as [HeadLayout];
  const [key, value] = sides.keysValues.layouts as [HeadLayout, HeadLayout];
  const [outGradient] = sides.outGradient.layouts as [HeadLayout];
  const operands = { query, key, value, outGradient };
  const outToken = heads * width;
  const out: HeadLayout = { start: 0, batch: queries * outToken, head: width, token: outToken };
  const dense = (own: Heads, tokens: number, row: number): HeadLayout => {
    const head = tokens * row;
    return { start: 0, batch: own.heads * head, head, token: row };
  };
  const isAligned = size % 4 === 0 && width % 4 === 0;
  const result = (
    name: string,
    tokens: number,
    row: number,
    layout: HeadLayout,
    length: number,
  ) => {
    const own = name === "placedOut" || name === "placedQueryGradient" ? test : sharedHeads(test);
    return isAligned
      ? { own, name, tokens, row, layout, length }
      : {
          ...{ own, name, tokens, row, layout: dense(own, tokens, row) },
          length: batch * own.heads * tokens * row,
        };
  };
  const both = isAligned ? "placedKeyGradient" : "placedValueGradient";
  const results = {
    out: result("placedOut", queries, width, out, batch * heads * queries * width),
    queryGradient: result("placedQueryGradient", queries, size, query, sides.queries.length),
    keyGradient: result("placedKeyGradient", keys, size, key, sides.keysValues.length),
    valueGradient: result(both, keys, width, value, sides.keysValues.length),
  };
  return { sides, operands, results, isAligned };
}

function operandsOf(test: Case) {
  const { entries, queries, keys, size, width, group = 1 } = attributesOf(test);
  const shared = entries / group;
  const { storage: dtype = "float32", batch } = test;
  const { sides, operands: layouts, results } = placesOf(test);
  const dense = {
    query: testValues(entries * queries * size, 1),
    key: testValues(shared * keys * size, 2),
    value: testValues(shared * keys * width, 3),
    outGradient: testValues(entries * queries * width, 4),
  };
  const place = (length: number, names: readonly (keyof typeof dense)[]): Float32Array => {
    const placed = new Float32Array(length).fill(9);
    for (const name of names) {
      const isSize = name === "query" || name === "key";
      const isShared = name === "key" || name === "value";
      const tokens = isShared ? keys : queries;
      eachElement(
        isShared ? sharedHeads(test) : test,
        tokens,
        isSize ? size : width,
        layouts[name],
        (from, to) => {
          placed[to] = dense[name][from] as number;
        },
      );
    }
    return placed;
  };
  const untouched = (length: number): Float32Array => new Float32Array(length).fill(7);
  const lengths = Float32Array.from(
    { length: batch },
    (_, b) => (b * keys) / Math.max(1, batch - 1),
  );
  return {
    query: { values: dense.query, dtype },
    key: { values: dense.key, dtype },
    value: { values: dense.value, dtype },
    outGradient: { values: dense.outGradient, dtype },
    out: { values: entries * queries * width, dtype },
    normalizers: { values: entries * queries * 2 },
    statistics: { values: entries * queries * 4 },
    queryGradient: { values: entries * queries * size, dtype },
    keyGradient: { values: shared * keys * size, dtype },
    valueGradient: { values: shared * keys * width, dtype },
    mask: { values: lengths.map(Math.floor), dtype: "uint32" },
    placedQuery: { values: place(sides.queries.length, ["query"]), dtype },
    placedKeyValue: { values: place(sides.keysValues.length, ["key", "value"]), dtype },
    placedOutGradient: { values: place(sides.outGradient.length, ["outGradient"]), dtype },
    placedOut: { values: untouched(results.out.length), dtype },
    placedNormalizers: { values: entries * queries * 2 },
    placedStatistics: { values: entries * queries * 4 },
    placedQueryGradient: { values: untouched(results.queryGradient.length), dtype },
    placedKeyGradient: { values: untouched(results.keyGradient.length), dtype },
    placedValueGradient: { values: untouched(results.valueGradient.length), dtype },
  } as const;
}

type Operands = ReturnType<typeof operandsOf>;

/** Calls `visit` with the place of each element with contiguous heads, and its place in a layout. */
function eachElement(
  { batch, heads }: Heads,
  tokens: number,
  size: number,
  layout: HeadLayout,
  visit: (dense: number, placed: number) => void,
): void {
  let dense = 0;
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let t = 0; t < tokens; t++)
        for (let c = 0; c < size; c++)
          visit(dense++, layout.start + b * layout.batch + h * layout.head + t * layout.token + c);
}

/** A target for launches with operands in other places. */
const placing = <B>(
  target: LaunchTarget<B>,
  { heads }: Case,
  places: Readonly<Record<string, HeadPlace<B>>>,
): LaunchTarget<B> => ({
  allocate: (bytes) => target.allocate(bytes),
  launch(launch: Launch<B>) {
    const own = headsOf(launch).filter(({ name }) => name in places);
    if (own.length === 0) return target.launch(launch);
    const moved = new Map(own.map(({ name }) => [name, places[name] as HeadPlace<B>]));
    const placed = withHeads(launch, moved, heads);
    if (!placed) throw new Error(`${launch.kernel.name} cannot find its heads`);
    target.launch(placed);
  },
});

const launchesOf =
  (test: Case) =>
  <B>(given: LaunchTarget<B>, all: { readonly [name in keyof Operands]: Binding<B> }): void => {
    const target = test.hasSubgroups === false ? withoutSubgroups(given) : given;
    const attributes = attributesOf(test);
    const bound = { ...all, mask: test.hasPadding ? all.mask : undefined };
    const launch = (to: LaunchTarget<B>, operands: typeof bound): void => {
      attention(to, operands, attributes);
      to.launch(attentionStatistics(operands, attributes));
      attentionQueryGradient(to, operands, attributes);
      attentionKeyValueGradient(to, operands, attributes);
    };
    launch(target, bound);
    const { operands, results, isAligned } = placesOf(test);
    const placed: Record<string, HeadPlace<B>> = {
      query: { binding: all.placedQuery, layout: operands.query },
      key: { binding: all.placedKeyValue, layout: operands.key },
      value: { binding: all.placedKeyValue, layout: operands.value },
      outGradient: { binding: all.placedOutGradient, layout: operands.outGradient },
    };
    const own: Partial<Record<string, Binding<B>>> = {
      normalizers: all.placedNormalizers,
      statistics: all.placedStatistics,
    };
    for (const [name, result] of Object.entries(results)) {
      const binding = all[result.name as keyof Operands];
      if (isAligned) placed[name] = { binding, layout: result.layout };
      else own[name] = binding;
    }
    launch(placing(target, test, placed), { ...bound, ...own });
  };

/** The differences between the two, bit for bit, and stores outside of the results. */
function differences(test: Case, got: Results<Operands>): readonly string[] {
  const found: string[] = [];
  const count = (name: string, wrong: number): void => {
    if (wrong > 0) found.push(`${JSON.stringify(test)}: ${wrong} of ${name}`);
  };
  for (const [name, placed] of [
    ["normalizers", "placedNormalizers"],
    ["statistics", "placedStatistics"],
  ] as const)
    count(name, got[name].filter((v, i) => !Object.is(v, got[placed][i])).length);
  const beside = new Map<string, Set<number>>();
  for (const [name, { own, name: placed, tokens, row, layout }] of Object.entries(
    placesOf(test).results,
  )) {
    const [dense, elsewhere] = [got[name as keyof Operands], got[placed as keyof Operands]];
    const rest = beside.get(placed) ?? new Set(elsewhere.keys());
    beside.set(placed, rest);
    let wrong = 0;
    eachElement(own, tokens, row, layout, (from, to) => {
      rest.delete(to);
      if (!Object.is(dense[from], elsewhere[to])) wrong++;
    });
    count(name, wrong);
  }
  for (const [name, rest] of beside)
    count(
      `what is beside ${name}`,
      [...rest].filter((i) => got[name as keyof Operands][i] !== 7).length,
    );
  return found;
}

const plain: Case = { batch: 2, heads: 3, queries: 5, keys: 6, size: 8 };

const cases: readonly Case[] = [
  ...[1, 3, 4, 20, 64, 128].map((size) => ({ ...plain, size })),
  { ...plain, size: 5, width: 9 },
  { ...plain, size: 16, width: 4 },
  ...[0, 1, 31, 70].map((length) => ({ ...plain, queries: length, keys: length, isCausal: true })),
  { ...plain, queries: 1, keys: 0 },
  { ...plain, heads: 1 },
  { ...plain, batch: 1, p: 0.5 },
  { ...plain, heads: 6, group: 2 },
  { ...plain, heads: 6, group: 6, size: 5, width: 9 },
  { ...plain, batch: 3, keys: 33, hasPadding: true, p: 0.25 },
  ...(["float16", "bfloat16", "float8e4m3fn"] as const).map((storage) => ({ ...plain, storage })),
];

/** Heads that are no quads are read by elements: with subgroups such programs take the compiler three times as long. */
const gpuCases: Readonly<Record<"best" | "packed", readonly Case[]>> = {
  best: [
    { ...plain, queries: 37, keys: 37, size: 64, isCausal: true, p: 0.5, storage: "float16" },
    { ...plain, heads: 4, group: 2, queries: 9, keys: 21, size: 3, hasSubgroups: false },
  ],
  packed: [
    { ...plain, queries: 21, keys: 40, size: 8, hasPadding: true, storage: "float16" },
    { ...plain, heads: 4, group: 2, queries: 9 },
  ],
};

const tiers = await testTiers();

describe("attention with its heads elsewhere", () => {
  it("on the CPU stores the same bits, and nothing beside them", () => {
    const found = cases.flatMap((test) =>
      differences(test, runOnCpu(operandsOf(test), launchesOf(test))),
    );
    expect(found).toEqual([]);
  });

  it.each(tiers)("on the GPU, %s tier, too", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const test of gpuCases[tier === "packed" ? tier : "best"])
      found.push(...differences(test, await runOnGpu(device, operandsOf(test), launchesOf(test))));
    expect(found).toEqual([]);
  });

  it("is refused what it cannot reach", () => {
    const launches: Launch<object>[] = [];
    const target: LaunchTarget<object> = {
      launch: (launch) => launches.push(launch),
      allocate: () => ({}),
    };
    const binding = (length: number): Binding<object> => ({
      ...{ buffer: {}, offset: 0, length, dtype: "float32" },
    });
    const rows = (): Binding<object> => binding(48);
    const operands = {
      ...{ query: rows(), key: rows(), value: rows(), outGradient: rows() },
      ...{ statistics: binding(24), keyGradient: rows(), valueGradient: rows() },
    };
    const shape = { entries: 2, queries: 3, keys: 3, size: 8, width: 8, scale: 1 };
    attentionKeyValueGradient(target, operands, shape);
    const [launch] = launches as [Launch<object>];
    const dense = { start: 0, batch: 48, head: 24, token: 8 };
    const move = (name: string, layout: HeadLayout, to = binding(480)) =>
      withHeads(launch, new Map([[name, { binding: to, layout }]]), 2);
    expect(move("key", dense)?.bindings[1]?.length).toBe(480);
    expect(move("key", { ...dense, start: 2 })).toBeUndefined();
    expect(move("key", { ...dense, token: 9 })).toBeUndefined();
    const grouped: Launch<object>[] = [];
    attentionQueryGradient(
      { ...target, launch: (one) => grouped.push(one) },
      {
        ...{ ...operands, queryGradient: rows() },
        ...{ key: binding(24), value: binding(24) },
      },
      { ...shape, group: 2 },
    );
    const [shared] = grouped as [Launch<object>];
    // One head of queries per batch element would leave half a head of keys.
    const place = new Map([["query", { binding: rows(), layout: dense }]]);
    expect(withHeads(shared, place, 1)).toBeUndefined();
    expect(withHeads(shared, place, 2)).toBeDefined();
    expect(move("keyGradient", dense)?.kernel.variant).toMatch("parts");
    expect(move("keyGradient", dense, rows())?.kernel.variant).not.toMatch("parts");
    const together = binding(480);
    const places = [together, { ...together, dtype: "float16" }, together] as const;
    const joined = (value: Binding<object>) =>
      withHeads(
        launch,
        new Map([
          ["keyGradient", { binding: together, layout: dense }],
          ["valueGradient", { binding: value, layout: { ...dense, start: 240 } }],
        ]),
        2,
      );
    expect(joined(places[1])).toBeUndefined();
    expect(joined(places[2])?.bindings).toHaveLength(6);
    expect(joined(places[2])?.kernel.bindings.at(-1)).toEqual({
      name: "results",
      access: "readwrite",
    });
  });

  it("counts heads anew where they are evenly apart", () => {
    const even = { start: 4, batch: 120, head: 40, token: 8 };
    expect(withHeadCount(even, { entries: 6, heads: 3 }, 2)).toEqual({ ...even, batch: 80 });
    expect(withHeadCount({ ...even, batch: 8 }, { entries: 6, heads: 3 }, 2)).toBeUndefined();
    expect(withHeadCount({ ...even, head: 0 }, { entries: 6, heads: 1 }, 3)).toEqual({
      ...even,
      batch: 360,
      head: 120,
    });
  });
});
