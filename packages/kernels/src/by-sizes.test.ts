import { expect, test } from "vitest";
import { BySizes } from "./by-sizes.js";

interface Choices {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly isTransposed: boolean;
}

const counting = () => {
  let made = 0;
  const cache = new BySizes<Choices, number>(
    () => ++made,
    (a, b) => a.isTransposed === b.isTransposed,
  );
  const get = (choices: Choices): number => {
    const { m, n, k } = choices;
    return cache.known(m, n, k, choices) ?? cache.make(m, n, k, choices);
  };
  return { get, made: () => made };
};

const square = { m: 4, n: 4, k: 4, isTransposed: false };

test("a value is made once for equal sizes and choices", () => {
  const { get, made } = counting();
  expect(get(square)).toBe(get({ ...square }));
  expect(made()).toBe(1);
});

test("each size and each choice has a value of its own", () => {
  const { get, made } = counting();
  const all: Choices[] = [
    square,
    ...[{ m: 8 }, { n: 8 }, { k: 8 }, { isTransposed: true }].map((other) => ({
      ...square,
      ...other,
    })),
  ];
  const first = all.map((choices) => get(choices));
  expect(new Set(first).size).toBe(all.length);
  expect(all.map((choices) => get(choices))).toEqual(first);
  expect(made()).toBe(all.length);
});

test("of ever new sizes only so many values are kept", () => {
  const { get, made } = counting();
  for (let m = 1; m <= 4096; m++) get({ ...square, m });
  expect(get({ ...square, m: 1 })).toBe(1);
  get({ ...square, m: 5000 });
  expect(get({ ...square, m: 1 })).toBe(4098);
  expect(made()).toBe(4098);
});
