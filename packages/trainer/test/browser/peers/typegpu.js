import { wrapDevice } from "@halfstep/device";
import { gpuRuntime } from "@halfstep/tensor";
import tgpu, { d } from "typegpu";
import { rawDevice } from "./raw-device.js";

/** A buffer of TypeGPU is an operand of a step, though it has three numbers. The result is read by TypeGPU. */
export async function shareWithTypegpu() {
  const { gpu } = await rawDevice();
  const root = tgpu.initFromDevice({ device: gpu });
  const theirs = root.createBuffer(d.arrayOf(d.f32, 3), [1, 2, 3]).$usage("storage");
  const runtime = gpuRuntime(await wrapDevice(gpu));
  const x = runtime.fromBuffer(root.unwrap(theirs), [3], "float32");
  const y = await runtime.step(() => x.mul(10));
  const wrapped = root.createBuffer(d.arrayOf(d.f32, 3), y.buffer).$usage("storage");
  return { values: [...(await wrapped.read())], isShared: root.unwrap(wrapped) === y.buffer };
}
