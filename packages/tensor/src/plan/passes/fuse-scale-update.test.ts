import type { Binding, Launch } from "@halfstep/device";
import { updateScale } from "@halfstep/kernels/amp";
import { stepControl } from "@halfstep/kernels/optimizers";
import { expect, test } from "vitest";
import { graph, inPlace, names, opaque, resident } from "../../../test/graphs.js";
import type { Storage } from "../../record/storage.js";
import { fuseScaleUpdate } from "./fuse-scale-update.js";

type Value = Binding<Storage>;

/** torch's rule. */
const rule: Parameters<typeof updateScale<Storage>>[1]["rule"] = {
  initScale: 2 ** 16,
  dynamic: true,
  growthFactor: 2,
  backoffFactor: 0.5,
  growthInterval: 2000,
  growthDelay: 0,
  exactInterval: true,
  hysteresis: 1,
  hysteresisRefill: "clean",
  tolerance: 0,
  minScale: 0,
  maxScale: 2 ** 127,
  atFloor: "clamp",
  raiseAtFloor: true,
  targetUnderflow: 0,
  underflowFormat: "float16",
};

/** The memory that an optimizer's step and its scale's update use. */
const touched = () => ({
  foundInf: resident(1, "uint32") as Value,
  state: resident(8) as Value,
  lossFlag: resident(1, "uint32") as Value,
  outcomes: resident(2048) as Value,
  control: resident(12) as Value,
});

type Touched = ReturnType<typeof touched>;

const prepare = ({ foundInf, state, control }: Touched): Launch<Storage> =>
  stepControl(
    {
      ...{ foundInf: foundInf.buffer, scale: state.buffer, applied: resident(1, "uint32").buffer },
      ...{ table: resident(4), control },
    },
    { lr: 0.1 },
  );

const update = ({ foundInf, state, lossFlag, outcomes }: Touched): Launch<Storage> =>
  updateScale(
    {
      ...{ foundInf: foundInf.buffer, state: state.buffer },
      ...{ lossFlag: lossFlag.buffer, outcomes: outcomes.buffer },
    },
    { rule, tag: 1 },
  );

test("the launch that prepares a step updates the scale, before the optimizer's own", () => {
  const all = touched();
  const { nodes } = fuseScaleUpdate(
    graph([prepare(all), opaque([all.control], [resident()]), update(all)]),
  );
  expect(nodes.map(({ launch }) => launch.kernel.name)).toEqual([
    "step-control+update-scale",
    "opaque",
  ]);
  const [joined] = nodes;
  expect(joined?.recorded).toEqual([0, 2]);
  // Scalars that change from step to step come from the launch that has them.
  expect(joined?.sources.get("lr")).toEqual({ launch: 0, name: "lr" });
  expect(joined?.sources.get("tag")).toEqual({ launch: 2, name: "tag" });
});

test("not where somebody looks at what it changes in between, or changes it", () => {
  for (const name of ["foundInf", "state", "lossFlag", "outcomes"] as const)
    for (const other of [(x: Value) => opaque([x], [resident()]), (x: Value) => inPlace(x)]) {
      const all = touched();
      const before = graph([prepare(all), other(all[name]), update(all)]);
      expect(names(fuseScaleUpdate(before))).toEqual(names(before));
    }
});

test("not where several optimizers step by one scale, or none does", () => {
  const all = touched();
  const second = { ...all, foundInf: resident(1, "uint32") };
  for (const before of [
    graph([prepare(all), prepare(second), update(all)]),
    graph([prepare(second), update(all)]),
    graph([update(all)]),
  ])
    expect(names(fuseScaleUpdate(before))).toEqual(names(before));
});
