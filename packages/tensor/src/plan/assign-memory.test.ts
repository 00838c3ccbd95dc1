import { sizeClass } from "@halfstep/device";
import { describe, expect, test } from "vitest";
import {
  graph,
  inPlace,
  input,
  memoryMistakes,
  opaque,
  resident,
  transient,
} from "../../test/graphs.js";
import { assignMemory, heldForBackward } from "./assign-memory.js";

describe("slots", () => {
  test("are shared by values that never live together", () => {
    const chain = [transient(), transient(), transient(), transient()] as const;
    const [a, b, c, d] = chain;
    const plan = graph([opaque([], [a]), opaque([a], [b]), opaque([b], [c]), opaque([c], [d])], {
      kept: [d.buffer],
    });
    const memory = assignMemory(plan, true);
    expect(memoryMistakes(plan, memory)).toEqual([]);
    expect(chain.map(({ buffer }) => memory.slotOf.get(buffer))).toEqual([0, 1, 0, 1]);
  });

  test("are not shared where sharing is switched off", () => {
    const [a, b, c] = [transient(), transient(), transient()];
    const plan = graph([opaque([], [a]), opaque([a], [b]), opaque([b], [c])]);
    expect(assignMemory(plan, false).slots).toHaveLength(3);
  });

  test("of a launch's results are none of its operands'", () => {
    const [a, b] = [transient(), transient()];
    const { slotOf } = assignMemory(graph([opaque([], [a]), opaque([a], [b])]), true);
    expect(slotOf.get(a.buffer)).not.toBe(slotOf.get(b.buffer));
  });

  test("hold what a function of the host writes until the last one has ended", () => {
    const [a, b, c] = [transient(), transient(), transient()];
    const launches = [opaque([], [a]), inPlace(a), opaque([], [b]), inPlace(c)];
    const part = { index: 0, count: 1, offset: 0, length: 8 };
    const plain = graph(launches);
    const plan = {
      ...plain,
      nodes: plain.nodes.map((node, n) => (n % 2 ? { ...node, part } : node)),
    };
    const [life] = assignMemory(plan, true).lives;
    expect(life).toMatchObject({ storage: a.buffer, first: 0, last: launches.length });
    const { slotOf } = assignMemory(plain, true);
    expect(slotOf.get(a.buffer)).toBe(slotOf.get(b.buffer));
  });

  test("hold inputs from before the first launch, and what is kept until after the last", () => {
    const [x, y] = [input(), input()];
    const [a, b, kept] = [transient(), transient(), transient()];
    const plan = graph(
      [
        opaque([], [kept]),
        opaque([], [a]),
        opaque([a], [b]),
        opaque([x, b], [a]),
        opaque([y], [b]),
      ],
      { kept: [kept.buffer, b.buffer] },
    );
    const memory = assignMemory(plan, true);
    expect(memoryMistakes(plan, memory)).toEqual([]);
    expect(new Set([x, y, kept].map(({ buffer }) => memory.slotOf.get(buffer))).size).toBe(3);
  });

  test("exist for an input that nothing reads only where it is kept", () => {
    const [x, y, z] = [input(), input(), transient()];
    const { slotOf } = assignMemory(graph([opaque([], [z])], { kept: [x.buffer] }), true);
    expect([slotOf.has(x.buffer), slotOf.has(y.buffer)]).toEqual([true, false]);
  });

  test("are none of a resident's", () => {
    const [w, a] = [resident(), transient()];
    const { slotOf, slots } = assignMemory(graph([opaque([w], [a]), inPlace(w)]), true);
    expect([slotOf.has(w.buffer), slots.length]).toEqual([false, 1]);
  });

  test("that are large wait for large values, and are not held by small ones that stay", () => {
    const [first, second] = [transient(10_000), transient(10_000)];
    const [before, small, after] = [transient(4), transient(10), transient(4)];
    const plan = graph([
      opaque([], [before, first]),
      opaque([first], [small]),
      opaque([before], [second]),
      opaque([second], [after]),
      opaque([small], [after]),
    ]);
    const memory = assignMemory(plan, true);
    expect(memoryMistakes(plan, memory)).toEqual([]);
    expect(memory.slots.filter((bytes) => bytes > 256)).toEqual([sizeClass(40_000)]);
  });

  test("are as large as a pool would make them, and fit best what is in them", () => {
    const [large, small, again, mid] = [
      transient(40_000),
      transient(10),
      transient(12),
      transient(30_000),
    ];
    const plan = graph([
      opaque([], [large, small]),
      opaque([large, small], []),
      opaque([], [again, mid]),
      opaque([again, mid], []),
    ]);
    const memory = assignMemory(plan, true);
    expect(memoryMistakes(plan, memory)).toEqual([]);
    expect(memory.slots).toEqual([sizeClass(160_000), 256]);
    expect(memory.slotOf.get(again.buffer)).toBe(1);
  });
});

test("activations are what the backward pass reads of the forward pass, once each", () => {
  const [x, w] = [input(16), resident(64)];
  const [saved, passed, loss, g] = [
    transient(32, "float16"),
    transient(8),
    transient(4),
    transient(8),
  ];
  const { nodes } = graph(
    [
      opaque([x, w], [saved]),
      opaque([saved], [passed]),
      opaque([passed], [loss]),
      opaque([saved, w], [g]),
      opaque([g, saved, x], [passed]),
    ],
    { backward: 3 },
  );
  expect(heldForBackward(nodes)).toEqual(new Set([saved.buffer, x.buffer]));
});
