import { expectTypeOf, test } from "vitest";
import { scan, type Tensor, type Variable } from "../functional.js";

declare const x: Tensor;
declare const variable: Variable;

test("carries and results keep their form; variables become tensors", () => {
  const [last, all] = scan(
    ({ hidden, cell, count }, { words: { word }, mask }) => {
      expectTypeOf(hidden).toEqualTypeOf<Tensor>();
      expectTypeOf(word).toEqualTypeOf<Tensor>();
      expectTypeOf(mask).toEqualTypeOf<Tensor>();
      return [
        { hidden: hidden.add(mask), cell, count: count + 1 },
        { hidden, parts: [cell] },
      ];
    },
    { hidden: variable, cell: x, count: 0 },
    { words: { word: x }, mask: variable },
  );
  expectTypeOf(last).toEqualTypeOf<{ hidden: Tensor; cell: Tensor; count: number }>();
  expectTypeOf(all).toEqualTypeOf<{ hidden: Tensor; parts: Tensor[] }>();
});

test("literals of arrays are tuples", () => {
  const [last, all] = scan(
    ([hidden, count], [word]) => [
      [hidden, count + 1],
      [word, { hidden }],
    ],
    [variable, 0],
    [x],
  );
  expectTypeOf(last).toEqualTypeOf<[Tensor, number]>();
  expectTypeOf(all).toEqualTypeOf<[Tensor, { hidden: Tensor }]>();
});

test("one tensor, none, and results of nothing", () => {
  const [last, all] = scan((carry, each) => [carry.add(each), carry], variable, x);
  expectTypeOf([last, all] as const).toEqualTypeOf<readonly [Tensor, Tensor]>();
  const [, none] = scan((carry) => [carry, undefined], x, undefined, { length: 3 });
  expectTypeOf(none).toEqualTypeOf<undefined>();
  // @ts-expect-error a step returns the carry, too
  scan((carry: Tensor) => carry, x, x);
  // @ts-expect-error the next carry has another form
  scan((carry) => [{ hidden: carry }, carry], x, x);
});
