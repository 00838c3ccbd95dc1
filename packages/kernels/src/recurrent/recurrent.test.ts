import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { deviceMismatches, runOnCpu, testValues } from "../../test/harness.js";
import { gruCell, gruCellBackward } from "./gru.js";
import { lstmCell, lstmCellBackward } from "./lstm.js";

// More than a workgroup of quads, the last of which is half used, and a step at the end of a sequence that is read backwards.
const [length, batch, hidden, used] = [3, 5, 56, 54];
const step = { length, batch, hidden, used, time: 0, order: 2 };
const size = batch * hidden;

const filled = (count: number, seed: number, dtype: "float32" | "float16") => ({
  values: testValues(count, seed).map((v) => v * 3),
  dtype,
});

/** The same, with NaN in the units that only fill the quad: what a product of zeros and an infinite number leaves there. */
const padded = (...given: Parameters<typeof filled>) => {
  const { values, dtype } = filled(...given);
  return { values: values.map((v, i) => (i % hidden < used ? v : Number.NaN)), dtype };
};

const lstmOperands = (dtype: "float32" | "float16") => ({
  gates: padded(length * 4 * size, 1, dtype),
  projected: padded(4 * size, 2, dtype),
  bias: padded(4 * hidden, 3, dtype),
  cells: filled((length + 1) * size, 4, dtype),
  hidden: { values: size, dtype },
  output: filled(length * size, 5, dtype),
  activated: filled(length * 4 * size, 6, dtype),
  outputGradient: padded(length * size, 7, dtype),
  hiddenGradient: padded(size, 8, "float32"),
  cellGradient: filled(size, 9, "float32"),
  stepGradient: { values: 4 * size, dtype },
  gatesGradient: filled(length * 4 * size, 10, dtype),
});

const gruOperands = (dtype: "float32" | "float16") => ({
  gates: padded(length * 3 * size, 1, dtype),
  projected: padded(3 * size, 2, dtype),
  bias: padded(3 * hidden, 3, dtype),
  previous: filled(size, 4, dtype),
  hidden: { values: size, dtype },
  output: filled(length * size, 5, dtype),
  saved: filled(length * 5 * size, 6, dtype),
  outputGradient: padded(length * size, 7, dtype),
  hiddenGradient: padded(size, 8, "float32"),
  directGradient: filled(size, 9, "float32"),
  stepGradient: { values: 3 * size, dtype },
  gatesGradient: filled(length * 3 * size, 10, dtype),
  projectedGradient: filled(length * 3 * size, 11, dtype),
});

const tolerances = {
  float32: { relative: 2 ** -17, absolute: 2 ** -19 },
  float16: { relative: 2 ** -9, absolute: 2 ** -11 },
};

test.each(await testTiers())(
  "a step and its gradient equal their references, %s tier",
  async (tier) => {
    const device = await requestTestDevice({ tier });
    for (const dtype of ["float32", "float16"] as const) {
      const near = tolerances[dtype];
      const lstm = await deviceMismatches(
        device,
        lstmOperands(dtype),
        (target, bindings) => {
          target.launch(lstmCell(bindings, step));
          target.launch(lstmCellBackward(bindings, step));
        },
        {
          cells: near,
          hidden: near,
          output: near,
          cellGradient: near,
          stepGradient: near,
          gatesGradient: near,
        },
      );
      const gru = await deviceMismatches(
        device,
        gruOperands(dtype),
        (target, bindings) => {
          target.launch(gruCell(bindings, step));
          target.launch(gruCellBackward(bindings, step));
        },
        {
          output: near,
          saved: near,
          directGradient: near,
          gatesGradient: near,
          projectedGradient: near,
        },
      );
      expect([...lstm, ...gru]).toEqual([]);
    }
  },
);

test("units that only fill a quad become no NaN, whatever their operands are", () => {
  const lstm = runOnCpu(lstmOperands("float32"), (target, bindings) => {
    target.launch(lstmCell(bindings, step));
    target.launch(lstmCellBackward(bindings, step));
  });
  const gru = runOnCpu(gruOperands("float32"), (target, bindings) => {
    target.launch(gruCell(bindings, step));
    target.launch(gruCellBackward(bindings, step));
  });
  const { hidden: states, stepGradient } = lstm;
  for (const values of [states, stepGradient, gru.hidden, gru.stepGradient])
    expect([...values].filter((v, i) => i % hidden >= used && !Number.isFinite(v))).toEqual([]);
});

test("a step fills its own places alone, and units fill quads", () => {
  const operands = lstmOperands("float32");
  const { output, cells } = runOnCpu(operands, (target, bindings) =>
    target.launch(lstmCell(bindings, step)),
  );
  expect(output.slice(size)).toEqual(Float32Array.from(operands.output.values).slice(size));
  expect(cells.slice(0, 3 * size)).toEqual(
    Float32Array.from(operands.cells.values).slice(0, 3 * size),
  );
  expect(() =>
    runOnCpu(operands, (target, bindings) =>
      target.launch(lstmCell(bindings, { ...step, hidden: 54 })),
    ),
  ).toThrow("lstmCell: 54 hidden units are no whole quads");
});
