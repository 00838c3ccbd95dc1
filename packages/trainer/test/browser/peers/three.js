import { wrapDevice } from "@halfstep/device";
import { gpuRuntime } from "@halfstep/tensor";
import { Fn, instanceIndex, storage } from "three/tsl";
import { StorageBufferAttribute, WebGPURenderer } from "three/webgpu";
import { rawDevice } from "./raw-device.js";

/** A storage buffer that three.js computes is an operand of a step. */
export async function shareWithThree() {
  const { gpu } = await rawDevice();
  const renderer = new WebGPURenderer({ device: gpu });
  await renderer.init();
  const attribute = new StorageBufferAttribute(Float32Array.of(1, 2, 3, 4), 1);
  const values = storage(attribute, "float", 4);
  const tripled = Fn(() => {
    values.element(instanceIndex).mulAssign(3);
  });
  await renderer.computeAsync(tripled().compute(4));
  const runtime = gpuRuntime(await wrapDevice(gpu));
  const x = runtime.fromBuffer(renderer.backend.get(attribute).buffer, [4], "float32");
  const y = await runtime.step(() => x.add(0.5));
  return { values: [...(await y.toArray())] };
}
