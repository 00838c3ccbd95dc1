import { expectTypeOf, test } from "vitest";
import type { Device, DeviceEncoder, Launch, LaunchTarget, PreparedPass } from "./index.js";

test("an encoder is a launch target over GPU buffers", () => {
  expectTypeOf<DeviceEncoder>().toExtend<LaunchTarget<GPUBuffer>>();
  expectTypeOf<Device["encoder"]>().returns.toEqualTypeOf<DeviceEncoder>();
});

test("passes are prepared from launches over GPU buffers only", () => {
  expectTypeOf<Device["prepare"]>().parameter(0).toEqualTypeOf<readonly Launch<GPUBuffer>[]>();
  expectTypeOf<Device["prepare"]>().returns.toEqualTypeOf<PreparedPass>();
  expectTypeOf<readonly Launch<Float32Array>[]>().not.toExtend<Parameters<Device["prepare"]>[0]>();
});
