import type { Binding } from "@halfstep/device";
import {
  gatherTotals,
  larcRule,
  ruleFamily,
  type Terms,
  type UpdateRule,
  updateRule,
} from "@halfstep/kernels/optimizers";
import { describe, expect, it } from "vitest";
import { type Algorithm, type CommonOptions, FlatOptimizer, flatTensors } from "../src/index.js";
import { type AnyTarget, targets } from "./targets.js";

// What an optimizer of one's own leaves out is refused in the same words on every target: WGSL would read zero there, JavaScript `undefined`.

/** p -= lr · factor · g · share, with a factor of the algorithm and a share of the rate table. */
const rule = (over: Partial<UpdateRule> = {}): UpdateRule => ({
  ...updateRule({
    name: "mine",
    state: { seen: "signed" },
    scalars: ["factor"],
    columns: ["share"],
    passes: [
      {
        update: ({ seen, g, p, lr, factor, share }) => ({
          seen: seen.add(g),
          p: p.sub(lr.mul(factor).mul(g).mul(share)),
        }),
      },
    ],
  }),
  ...over,
});

const usual: Algorithm<CommonOptions> = {
  name: "Mine",
  rule: () => rule(),
  scalars: () => ({ factor: 2 }),
  columns: () => ({ key: "1", settledAt: 1, row: () => [0.5, 0, 0] }),
  initial: () => ({ seen: 1 }),
  validate() {},
};

async function stepped(target: AnyTarget, over: Partial<Algorithm<CommonOptions>>) {
  const flat = flatTensors(target, { weight: [4] });
  const whole = (buffer: object): Binding<object> => ({
    buffer,
    offset: 0,
    length: 4,
    dtype: "float32",
  });
  target.write(whole(flat.values), [1, 2, 3, 4]);
  target.write(whole(flat.gradients), [1, 1, 1, 1]);
  const defaults = { lr: 0.5, weightDecay: 0, maximize: false };
  new FlatOptimizer(target, flat, { ...usual, ...over }, defaults, {}).step();
  if ("submit" in target) (target as { submit(): void }).submit();
  return Array.from(await target.read(whole(flat.values)));
}

const pass = rule().passes[0] as UpdateRule["passes"][number];
const made = (over: Partial<UpdateRule>) => ({ rule: () => rule(over) });
const totals = (factors: readonly string[]) => ({
  terms: ({ g }: Terms<"g">) => [g.square()],
  factors,
  make: () => ({}),
});

describe.each(await targets())("%s", (_, make) => {
  it("runs what is whole", async () => {
    expect(await stepped(await make(), {})).toEqual([0.5, 1.5, 2.5, 3.5]);
  });

  it("makes the factors that a rule leaves alone zero", async () => {
    const passes = [
      { totals: totals(["left"]) },
      {
        update: ({
          p,
          seen,
          left,
          factor,
          share,
        }: Terms<"p" | "seen" | "left" | "factor" | "share">) => ({
          p: p.mul(left).add(factor.mul(share)),
          seen,
        }),
      },
    ];
    expect(await stepped(await make(), made({ passes, gather: gatherTotals }))).toEqual([
      1, 1, 1, 1,
    ]);
  });

  it.each<[string, Partial<Algorithm<CommonOptions>>, string]>([
    [
      "a scalar left out",
      { scalars: () => ({}) },
      'declares the scalar "factor", but got no value',
    ],
    [
      "a scalar too many",
      { scalars: () => ({ factor: 2, decay: 1 }) },
      'declares no scalar "decay"',
    ],
    ["a scalar of LARC left out", { rule: () => larcRule(rule()) }, 'the scalar "larcTrust"'],
    ["a table left out", { columns: undefined as never }, "declares the columns share"],
    [
      "a row without all columns",
      { columns: () => ({ key: "2", settledAt: 1, row: () => [1] as never }) },
      "it must give three numbers",
    ],
    [
      "a start of no state",
      { initial: () => ({ sen: 1 }) },
      '"sen", which is no state of its rule',
    ],
    ["a name of the generator's", made({ scalars: ["factor", "lr"] }), '"lr" is a name that every'],
    ["a name for two things", made({ scalars: ["factor", "share"] }), '"share" names two things'],
    ["too many columns", made({ columns: ["share", "b", "c", "d"] }), "there is room for 3"],
    [
      "too many factors",
      made({
        passes: [{ ...pass, totals: totals(["a", "b", "c", "d", "e"]) }],
        gather: gatherTotals,
      }),
      "there is room for 4",
    ],
    [
      "a factor before it is made",
      made({
        passes: [
          {
            update: ({ p, ratio }: Terms<"p" | "ratio">) => ({ p: p.mul(ratio) }),
            totals: totals(["ratio"]),
          },
        ],
        gather: gatherTotals,
      }),
      'pass 0 uses the factor "ratio"',
    ],
    [
      "totals without what gathers them",
      made({ passes: [{ ...pass, totals: totals(["left"]) }] }),
      'update rule "mine": pass 0 has totals: give the rule gather: gatherTotals',
    ],
    [
      "a change of no state",
      made({ passes: [{ update: ({ g }: Terms<"g">) => ({ sen: g }) }] }),
      'pass 0 changes "sen", which is no state',
    ],
    [
      "a change that is no term",
      made({ passes: [{ update: () => ({ seen: 0 as never }) }] }),
      'pass 0 makes no term of "seen"',
    ],
    [
      "a factor that totals do not declare",
      made({
        passes: [{ totals: { ...totals(["left"]), make: ({ lr }) => ({ rest: lr }) } }],
        gather: gatherTotals,
      }),
      'pass 0 makes "rest", which is no factor of it',
    ],
    [
      "a name that nobody declared",
      made({ passes: [{ update: ({ g, decay }: Terms<"g" | "decay">) => ({ p: g.mul(decay) }) }] }),
      'update rule "mine": pass 0 uses "decay", which the rule does not declare: there are g, p, seen',
    ],
    ["no passes", made({ passes: [] }), "it has no passes, and would train nothing"],
    [
      "a parameter that no pass returns",
      made({ passes: [{ update: ({ seen, g }: Terms<"seen" | "g">) => ({ seen: seen.add(g) }) }] }),
      "no pass returns p, so that it would train nothing",
    ],
    [
      "a state that no pass returns",
      made({ passes: [{ update: ({ p, g }: Terms<"p" | "g">) => ({ p: p.sub(g) }) }] }),
      'no pass returns the state "seen"',
    ],
    [
      "an update that returns nothing",
      made({ passes: [{ update: (() => {}) as never }] }),
      "pass 0: update() returns no object",
    ],
    [
      "a state of an unknown kind",
      made({ state: { seen: "sign" as never } }),
      'the state "seen" is of kind "sign": choose one of signed, unsigned, exact, transient',
    ],
    [
      "a state of totals that make() leaves out",
      made({
        passes: [{ ...pass, totals: { ...totals(["left"]), state: "kept" } }],
        gather: gatherTotals,
      }),
      'make() of pass 0 does not return the state "kept"',
    ],
  ])("refuses %s", async (_, over, message) => {
    await expect(stepped(await make(), over)).rejects.toThrow(message);
  });
});

it("a family makes one rule for each set of choices, whatever the rules are called", () => {
  const family = ruleFamily(({ factor }: { readonly factor: number }) =>
    rule({ scalars: [`by${factor}`] }),
  );
  expect(family({ factor: 2 })).toBe(family({ factor: 2 }));
  expect(family({ factor: 3 })).not.toBe(family({ factor: 2 }));
  expect(larcRule(family({ factor: 2 }))).not.toBe(larcRule(family({ factor: 3 })));
});
