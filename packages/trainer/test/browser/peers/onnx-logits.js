import * as ort from "onnxruntime-web/webgpu";

/**
 * The numbers of a file's only output, by ONNX Runtime in WebAssembly.
 * @param {string} file in base64
 * @param {Record<string, { type: "int64" | "float32", values: number[], dims: number[] }>} inputs
 */
export async function logitsOf(file, inputs) {
  ort.env.wasm.wasmPaths = new URL("ort/", location.href).href;
  ort.env.wasm.numThreads = 1;
  const bytes = Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0));
  const session = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"] });
  const feeds = Object.entries(inputs).map(([name, { type, values, dims }]) => {
    const data = type === "int64" ? BigInt64Array.from(values, BigInt) : Float32Array.from(values);
    return [name, new ort.Tensor(type, data, dims)];
  });
  const [output] = Object.values(await session.run(Object.fromEntries(feeds)));
  return [...(await output.getData())];
}
