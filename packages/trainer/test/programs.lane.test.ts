import { requestNullDevice } from "@halfstep/device/node";
import { expect, test } from "vitest";
import { deviceKinds, programsOn } from "./model-programs.js";

// Every program of the reference models, for every kind of device, passes Dawn's checks: among others that barriers are in uniform flow.

test.each(deviceKinds.map((kind) => [kind.name, kind] as const))(
  "programs for %s compile",
  async (_, kind) => {
    const device = await requestNullDevice();
    const complaints: string[] = [];
    for (const [code, { kernel }] of programsOn(kind)) {
      device.pushErrorScope("validation");
      const { messages } = await device.createShaderModule({ code }).getCompilationInfo();
      const error = await device.popErrorScope();
      if (error || messages.length > 0)
        complaints.push(`${kernel.name}: ${error?.message ?? messages.map((m) => m.message)}`);
    }
    device.destroy();
    expect(complaints).toEqual([]);
  },
);
