import { wrapDevice } from "@halfstep/device";
import { gpuRuntime } from "@halfstep/tensor";
import * as ort from "onnxruntime-web/webgpu";
import { addModel } from "./onnx-model.js";

/** ONNX Runtime makes the device. Its result is an operand of a step, and the result of the step is its next input, without copies. */
export async function shareWithOnnxruntime() {
  ort.env.wasm.wasmPaths = new URL("ort/", location.href).href;
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(addModel([3]), {
    executionProviders: ["webgpu"],
    preferredOutputLocation: "gpu-buffer",
  });
  const gpu = await ort.env.webgpu.device;
  const runtime = gpuRuntime(await wrapDevice(gpu));
  const first = await session.run({
    a: new ort.Tensor("float32", Float32Array.of(1, 2, 3), [3]),
    b: new ort.Tensor("float32", Float32Array.of(10, 10, 10), [3]),
  });
  const x = runtime.fromBuffer(first.c.gpuBuffer, [3], "float32");
  const y = await runtime.step(() => x.mul(2));
  const input = ort.Tensor.fromGpuBuffer(y.buffer, { dataType: "float32", dims: [3] });
  const second = await session.run({ a: input, b: input });
  return { values: [...(await second.c.getData())] };
}
