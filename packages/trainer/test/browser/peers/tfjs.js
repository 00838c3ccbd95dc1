import "@tensorflow/tfjs-backend-webgpu";
import { wrapDevice } from "@halfstep/device";
import { gpuRuntime } from "@halfstep/tensor";
import { WebGPUBackend } from "@tensorflow/tfjs-backend-webgpu";
import * as tf from "@tensorflow/tfjs-core";
import { rawDevice } from "./raw-device.js";

/** A tensor of TensorFlow.js is an operand of a step, whose result is a tensor of TensorFlow.js, without copies. */
export async function shareWithTfjs() {
  const { gpu, adapter } = await rawDevice();
  tf.env().set("WEBGPU_CPU_FORWARD", false);
  tf.removeBackend("webgpu");
  tf.registerBackend("webgpu", async () => new WebGPUBackend(gpu, adapter.info));
  await tf.setBackend("webgpu");
  const runtime = gpuRuntime(await wrapDevice(gpu));
  const theirs = tf.mul(tf.tensor1d([1, 2, 3]), 2).dataToGPU();
  const x = runtime.fromBuffer(theirs.buffer, [3], "float32");
  const y = await runtime.step(() => x.add(1));
  const zeroCopy = tf.tensor({ buffer: y.buffer, zeroCopy: true }, [3], "float32");
  return { values: [...(await tf.mul(zeroCopy, 10).data())] };
}
