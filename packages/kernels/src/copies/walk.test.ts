import type { Binding, Launch } from "@halfstep/device";
import { expect, test } from "vitest";
import { runOnCpu } from "../../test/harness.js";
import { concatenate, concatenatedWalks } from "./concatenate.js";
import { permute } from "./permute.js";
import { type CopiedDimension, copiedWalk, stridedCopy } from "./strided-copy.js";
import { inverseWalk, rangesThrough, turnsOf, type Walk } from "./walk.js";

/** The elements that a walk reads, in order. */
function elements({ offset, dimensions }: Walk): number[] {
  let found = [offset];
  for (const { size, stride } of dimensions)
    found = found.flatMap((at) => Array.from({ length: size }, (_, i) => at + i * stride));
  return found;
}

const counting = (length: number): Float32Array => Float32Array.from({ length }, (_, i) => i);

const binding = (length: number): Binding<object> => ({
  ...{ buffer: {}, offset: 0, length, dtype: "float32" },
});

/** The result of a copy of a tensor 0, 1, 2, …: the indices of the elements that it reads. */
function copied(length: number, dimensions: readonly CopiedDimension[], offset: number) {
  const count = dimensions.reduce((product, { size }) => product * size, 1);
  const operands = { input: { values: counting(length) }, out: { values: count } };
  const launch = stridedCopy(
    { input: binding(length), out: binding(count) },
    { dimensions, offset },
  );
  const { out } = runOnCpu(operands, (target, bound) =>
    target.launch(stridedCopy(bound, { dimensions, offset })),
  );
  return { launch, elements: [...out] };
}

test.each<[string, readonly CopiedDimension[], number]>([
  ["one number", [{ size: 1, stride: 1 }], 5],
  ["neighbours", [{ size: 8, stride: 1 }], 4],
  [
    "rows of quads",
    [
      { size: 3, stride: 16 },
      { size: 8, stride: 1 },
    ],
    4,
  ],
  [
    "rows of three",
    [
      { size: 4, stride: 7 },
      { size: 3, stride: 1 },
    ],
    2,
  ],
  ["every other, backwards", [{ size: 5, stride: -2 }], 20],
  [
    "a permutation",
    [
      { size: 2, stride: 12 },
      { size: 3, stride: 1 },
      { size: 4, stride: 3 },
    ],
    0,
  ],
])("a copy says what it reads: %s", (_, dimensions, offset) => {
  const { launch, elements: read } = copied(64, dimensions, offset);
  expect(elements(copiedWalk(launch) as Walk)).toEqual(read);
});

test("what pads, and what is no copy, has no walk", () => {
  const input = binding(8);
  const padded = stridedCopy(
    { input, out: binding(10) },
    { dimensions: [{ size: 10, stride: 1, from: 1, to: 9 }], offset: -1 },
  );
  const joined = concatenate(
    { inputs: [input], out: binding(8) },
    { outer: 1, sizes: [8], inner: 1 },
  );
  expect([padded, joined].map((launch) => copiedWalk(launch))).toEqual([undefined, undefined]);
  expect(concatenatedWalks(padded)).toBeUndefined();
});

test.each([1, 4])("a concatenation says where its inputs go: inner %i", (inner) => {
  const [outer, sizes] = [3, [2, 1, 4]];
  const inputs = sizes.map((size) => binding(outer * size * inner));
  const out = binding(outer * 7 * inner);
  const walks = concatenatedWalks(concatenate({ inputs, out }, { outer, sizes, inner })) as Walk[];
  const row = (place: number): number => place % (7 * inner);
  const starts = [0, 2 * inner, 3 * inner];
  for (const [p, walk] of walks.entries()) {
    const places = elements(walk);
    expect(places).toHaveLength((inputs[p] as Binding<object>).length);
    expect(row(Math.min(...places))).toBe(starts[p]);
  }
  expect(walks.flatMap(elements).sort((a, b) => a - b)).toEqual([...counting(out.length)]);
});

test("the inverse of a permutation leads back; a slice has none", () => {
  const shape = [2, 3, 4, 5];
  const walkOf = (order: readonly number[]): Walk => {
    const launch: Launch<object> = permute(
      { input: binding(120), out: binding(120) },
      { shape, order },
    );
    return copiedWalk(launch) as Walk;
  };
  for (const order of [
    [0, 2, 1, 3],
    [3, 2, 1, 0],
    [1, 3, 0, 2],
    [0, 1, 2, 3],
  ]) {
    const [there, back] = [walkOf(order), inverseWalk(walkOf(order)) as Walk].map(elements);
    expect(there?.map((place) => back?.[place])).toEqual([...counting(120)]);
  }
  const slice = {
    offset: 0,
    dimensions: [
      { size: 3, stride: 8 },
      { size: 4, stride: 1 },
    ],
  };
  expect(inverseWalk(slice)).toBeUndefined();
  expect(inverseWalk({ ...slice, offset: 4 })).toBeUndefined();
});

test("ranges lead where the walk does, or nowhere", () => {
  // Copies of [4, 6, 5] as [6, 4, 5].
  const walk = {
    offset: 7,
    dimensions: [
      { size: 6, stride: 5 },
      { size: 4, stride: 30 },
      { size: 5, stride: 1 },
    ],
  };
  const read = elements(walk);
  const wrong: string[] = [];
  let followed = 0;
  let refused = 0;
  for (let start = 0; start < 30; start++)
    for (const count of [1, 2, 3, 4])
      for (const stride of [1, 4, 5, 10, 15, 20, 25, 40, 45]) {
        const ranges = [
          { count, stride },
          { count: 2, stride: 1 },
        ];
        const copies = Array.from({ length: count }, (_, i) => start + i * stride);
        const places = copies.flatMap((copy) => [read[copy], read[copy + 1]]);
        const found = rangesThrough(walk, start, ranges);
        if (!found) {
          refused++;
          continue;
        }
        followed++;
        const [step, one] = found.strides as [number, number];
        const got = copies.flatMap((_, i) => {
          const place = found.start + i * step;
          return [place, place + one];
        });
        if (got.join() !== places.join()) wrong.push(`${start} + ${count} · ${stride}: ${got}`);
      }
  expect(wrong).toEqual([]);
  expect(followed).toBeGreaterThan(300);
  expect(refused).toBeGreaterThan(100);
  // A range of all copies would continue in the next row.
  expect(rangesThrough(walk, 0, [{ count: 24, stride: 5 }])).toBeUndefined();
  expect(turnsOf(walk, 5)).toEqual([24, 4, 1]);
});
