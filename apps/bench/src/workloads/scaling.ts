import type { Precision } from "../lanes/prepared.js";
import type { Workload } from "../workload.js";
import { trainingTolerance } from "../workload.js";
import { halfstepMlp, type MlpSize, mlpCost, parametersOf } from "./mlp.js";

const precisions: readonly Precision[] = ["float32", "float16"];

/** Networks that differ along one axis. */
const axes: Readonly<Record<string, readonly (readonly [value: number, size: MlpSize])[]>> = {
  width: [64, 128, 256, 512, 1024].map((width) => [
    width,
    { sizes: [256, width, width, width, 10], batch: 128 },
  ]),
  depth: [1, 2, 4, 8, 16].map((depth) => [
    depth,
    { sizes: [256, 256, ...Array<number>(depth).fill(256), 10], batch: 128 },
  ]),
  batch: [16, 64, 256, 1024].map((batch) => [batch, { sizes: [256, 256, 256, 10], batch }]),
};

const studyOf = ([axis, points]: readonly [string, (typeof axes)[string] & object]): Workload => ({
  name: `scaling-${axis}`,
  title: `Cost of an MLP's training step against its ${axis}`,
  level: "scaling",
  cases: points.map(([value, size], i) => ({
    name: `${axis} ${value}`,
    // The ends tell the slope.
    isQuick: i === 0 || i === points.length - 1,
    precisions,
    items: { count: size.batch, unit: "rows" },
    cost: (precision) => mlpCost(size, precision),
    tolerance: trainingTolerance,
    point: { axis, value, parameters: parametersOf(size) },
    on: { halfstep: (library, precision) => halfstepMlp(library, size, precision) },
  })),
});

export const scaling: readonly Workload[] = Object.entries(axes).map(studyOf);
