import { Mlp } from "@halfstep/models";
import { crossEntropy, noGrad } from "@halfstep/tensor";
import { gridSize, plane, pointCount, twoMoons } from "../two-moons.js";
import type { Task, TaskParts } from "./task.js";

/** The centres of the grid's cells, row by row from the top. */
function gridPoints(): Float32Array {
  const { left, right, bottom, top } = plane;
  const points = new Float32Array(2 * gridSize ** 2);
  for (let row = 0; row < gridSize; row++) {
    for (let column = 0; column < gridSize; column++) {
      const i = 2 * (row * gridSize + column);
      points[i] = left + ((column + 0.5) / gridSize) * (right - left);
      points[i + 1] = top - ((row + 0.5) / gridSize) * (top - bottom);
    }
  }
  return points;
}

/** A small network that learns which moon a point belongs to. Each step sees all points. */
export function moonsTask({ runtime, config, inPrecision }: TaskParts): Task {
  const model = new Mlp(runtime, { sizes: [2, 32, 32, 2], seed: config.seed });
  const { points, labels } = twoMoons(config.seed);
  const amplified = (values: Float32Array): Float32Array =>
    values.map((value) => value * 2 ** config.gain);
  const inputs = amplified(points);
  const grid = amplified(gridPoints());
  return {
    model,
    loss: () =>
      inPrecision(() =>
        crossEntropy(
          model.forward(runtime.tensor(inputs, [pointCount, 2])),
          runtime.tensor(labels),
        ),
      ),
    view: {
      kind: "surface",
      surface: () =>
        runtime.step(() =>
          noGrad(() =>
            inPrecision(() => model.forward(runtime.tensor(grid, [gridSize ** 2, 2]))).to(
              "float32",
            ),
          ),
        ),
    },
  };
}
