import { requestDevice } from "@halfstep/device/node";
import { describe, expect, test } from "vitest";
import {
  convolutionCases,
  convolutionLaunches,
  convolutionOperands,
  directions,
} from "./convolution-cases.js";
import { mismatches, runOnCpu, runOnGpu, unitRoundoff } from "./harness.js";

// Convolutions by hardware matrices, on drivers that multiply them: `npm run lanes` runs this on a software driver that does.

// The class of no vendor: the blocks of a GPU where nothing was measured.
const device = await requestDevice({ hardwareClass: "a GPU", label: "matrices" });

describe.each(directions)("%s", (direction) => {
  const byBlocks = convolutionCases.filter(({ byRows }) => !byRows?.includes(direction));
  test.each(byBlocks.map((tested) => [tested.name, tested] as const))("%s", async (_, tested) => {
    const operands = convolutionOperands(tested, direction);
    const launches = convolutionLaunches(tested, direction);
    let code = "";
    const found = await runOnGpu(device, operands, (target, bindings) =>
      launches(
        {
          allocate: (bytes) => target.allocate(bytes),
          launch(launch) {
            const { hardware, subgroupSize, tier } = device.capabilities;
            const { kernel, bindings } = launch;
            code += kernel.program({ tier, subgroupSize, hardware, bindings }).code;
            target.launch(launch);
          },
        },
        bindings,
      ),
    );
    expect(code).toContain("subgroupMatrixMultiplyAccumulate");
    const expected = runOnCpu(operands, launches);
    // Sums of these values are exact in float32, in any order.
    const exactly = { relative: unitRoundoff.float32, absolute: 0 };
    expect(mismatches(found.result, expected.result, exactly)).toEqual([]);
  });
});
