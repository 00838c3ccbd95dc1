import { expect, test } from "vitest";
import type { Case } from "../workload.js";
import { workloads } from "./index.js";

const all = workloads.flatMap((workload) =>
  workload.cases.map((chosen) => ({ workload, chosen, title: `${workload.name} ${chosen.name}` })),
);

test("workloads and their cases have names of their own", () => {
  expect(new Set(workloads.map(({ name }) => name)).size).toBe(workloads.length);
  expect(new Set(all.map(({ title }) => title)).size).toBe(all.length);
});

test("every case is ours too, costs something, and allows rounding errors", () => {
  const complaints = all.flatMap(({ chosen, title }) =>
    chosen.precisions.flatMap((precision) => {
      const { operations, bytes } = chosen.cost(precision);
      const isRight =
        chosen.on.halfstep && operations > 0 && bytes > 0 && chosen.tolerance[precision] > 0;
      return isRight ? [] : [`${title} ${precision}`];
    }),
  );
  expect(complaints).toEqual([]);
});

/** Models that no peer in JavaScript has are checked against torch, by the tests of `@halfstep/models`. */
const isOnlyOurs = ({ on }: Case): boolean =>
  Object.keys(on).every((library) => library === "halfstep" || library === "torch");

test("what peers share has a definition in float64, or peers that check each other", () => {
  const isChecked = (chosen: Case) =>
    chosen.expected || (chosen.on.jax && chosen.on.tfjs) || isOnlyOurs(chosen);
  expect(
    all.filter(({ workload, chosen }) => workload.level !== "scaling" && !isChecked(chosen)),
  ).toEqual([]);
});

test("the quick run meets every workload that peers share", () => {
  const left = workloads.filter(({ cases }) =>
    cases.every((chosen) => !chosen.isQuick && !isOnlyOurs(chosen)),
  );
  expect(left.map(({ name }) => name)).toEqual(["attention"]);
});

test("scaling studies vary one axis", () => {
  const points = all.flatMap(({ workload, chosen }) =>
    workload.level === "scaling" ? [chosen.point] : [],
  );
  expect(points.length).toBeGreaterThan(10);
  expect(points.every((point) => point && point.value > 0 && point.parameters > 0)).toBe(true);
});
