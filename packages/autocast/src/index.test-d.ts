import { expectTypeOf, test } from "vitest";
import {
  type AutocastRegion,
  autocast,
  type CastDType,
  type CastPolicy,
  currentRegion,
  resolveCast,
  withoutAutocast,
} from "./index.js";

const dtype = "float16";

test("autocast has its callback's type", () => {
  expectTypeOf(autocast({ dtype }, () => 1)).toEqualTypeOf<number>();
  expectTypeOf(autocast({ dtype }, () => ({ loss: "x" as const }))).toEqualTypeOf<{ loss: "x" }>();
  expectTypeOf(autocast({ dtype }, () => {})).toEqualTypeOf<void>();
  expectTypeOf(autocast({ dtype }, (): string | undefined => undefined)).toEqualTypeOf<
    string | undefined
  >();
  expectTypeOf(withoutAutocast(() => [1, 2])).toEqualTypeOf<number[]>();
  expectTypeOf(autocast({ dtype }, () => autocast({ dtype }, () => true))).toEqualTypeOf<boolean>();
});

test("functions may be generic in the result of their callback", () => {
  const amp = <T>(fn: () => T) => autocast({ dtype }, fn);
  expectTypeOf(amp(() => 1)).toEqualTypeOf<number>();
  const inside = <T, A extends unknown[]>(fn: (...given: A) => T, ...given: A) =>
    autocast({ dtype }, () => ({ result: fn(...given) }));
  expectTypeOf(inside((x: string) => x, "a")).toEqualTypeOf<{ result: string }>();
  const bounded = <T extends object>(fn: () => T) => withoutAutocast(() => fn());
  expectTypeOf(bounded(() => [1])).toEqualTypeOf<number[]>();
  // @ts-expect-error a promise of whatever type
  const deferred = <T>(fn: () => Promise<T>) => autocast({ dtype }, fn);
  expectTypeOf(deferred).toBeFunction();
});

test("results of unknown types are accepted", () => {
  expectTypeOf(autocast({ dtype }, () => JSON.parse("1"))).toBeAny();
  expectTypeOf(autocast({ dtype }, (): unknown => 1)).toBeUnknown();
});

test("promises are refused", () => {
  // @ts-expect-error an async callback
  autocast({ dtype }, async () => 1);
  // @ts-expect-error a promise
  autocast({ dtype }, () => Promise.resolve());
  // @ts-expect-error perhaps a promise
  autocast({ dtype }, (): number | Promise<number> => 1);
  // @ts-expect-error a thenable
  withoutAutocast((): PromiseLike<void> => Promise.resolve());
});

test("generators are refused", () => {
  // @ts-expect-error a generator
  autocast({ dtype }, function* () {
    yield 1;
  });
  // @ts-expect-error an async generator
  withoutAutocast(async function* () {});
  // @ts-expect-error perhaps a generator
  autocast({ dtype }, (): number | Generator<number> => 1);
  // @ts-expect-error a function that returns one
  autocast({ dtype })(function* () {});
  expectTypeOf(autocast({ dtype }, () => [1].values())).toEqualTypeOf<ArrayIterator<number>>();
});

test("options", () => {
  autocast({ enabled: false }, () => {});
  autocast({ dtype: "float32", enabled: false }, () => {});
  autocast({ dtype: "bfloat16", enabled: Math.random() < 0.5 }, () => {});
  // @ts-expect-error a dtype is needed where something may be cast
  autocast({}, () => {});
  // @ts-expect-error float32 is { enabled: false }
  autocast({ dtype: "float32" }, () => {});
  // @ts-expect-error policies have names
  autocast({ dtype, policies: { exp: "fp32" } }, () => {});
});

test("resolution", () => {
  expectTypeOf(currentRegion()).toEqualTypeOf<AutocastRegion | undefined>();
  expectTypeOf(resolveCast("promote", [], undefined)).toEqualTypeOf<CastDType | undefined>();
  expectTypeOf<{ banned: string }>().toExtend<CastPolicy>();
});

test("the decorator keeps types", () => {
  const wrapped = autocast({ dtype })((x: number, name: string) => `${name}${x}`);
  expectTypeOf(wrapped).parameters.toEqualTypeOf<[number, string]>();
  expectTypeOf(wrapped).returns.toEqualTypeOf<string>();
  // @ts-expect-error an async function
  autocast({ dtype })(async (x: number) => x);
  class Head {
    @autocast({ dtype })
    forward(x: number): string {
      return String(x);
    }
  }
  expectTypeOf(new Head().forward(1)).toEqualTypeOf<string>();
});
