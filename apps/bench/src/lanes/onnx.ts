import { decodeArray, encodeArray, float16 } from "@halfstep/formats";
import { type OnnxNode, onnxModel } from "./onnx-model.js";
import type { Precision, Prepared } from "./prepared.js";

interface OrtTensor {
  readonly data: Float32Array | Uint16Array;
  getData(): Promise<Float32Array | ArrayBufferView>;
  dispose(): void;
}

interface OrtSession {
  run(feeds: Readonly<Record<string, OrtTensor>>): Promise<Record<string, OrtTensor>>;
  release(): Promise<void>;
}

/** The part of onnxruntime-web that workloads use. */
export interface OnnxLibrary {
  readonly backend: "webgpu" | "wasm";
  readonly ort: {
    readonly InferenceSession: {
      create(model: Uint8Array, options: object): Promise<OrtSession>;
    };
    readonly Tensor: {
      new (type: string, data: Float32Array | Uint16Array, dims: readonly number[]): OrtTensor;
      fromGpuBuffer(buffer: GPUBuffer, options: object): OrtTensor;
    };
    readonly env: { readonly webgpu: { readonly device: Promise<GPUDevice> } };
  };
}

/** A model of one op. Inputs and output stay on the device where there is one. */
export async function onnxOperation(
  { ort, backend }: OnnxLibrary,
  node: Omit<OnnxNode, "type">,
  inputs: Readonly<Record<string, Float32Array>>,
  precision: Precision,
): Promise<Prepared> {
  const type = precision === "float16" ? "float16" : "float32";
  const isOnGpu = backend === "webgpu";
  const session = await ort.InferenceSession.create(onnxModel({ ...node, type }), {
    executionProviders: [backend],
    ...(isOnGpu && { preferredOutputLocation: "gpu-buffer" }),
  });
  const device = isOnGpu ? await ort.env.webgpu.device : undefined;
  const feeds = Object.fromEntries(
    Object.entries(inputs).map(([name, values]) => {
      const dims = node.inputs[name] as readonly number[];
      const data = type === "float16" ? (encodeArray(values, float16) as Uint16Array) : values;
      return [
        name,
        device ? onGpu(ort, device, data, type, dims) : new ort.Tensor(type, data, dims),
      ];
    }),
  );
  const compute = async (): Promise<OrtTensor> =>
    Object.values(await session.run(feeds))[0] as OrtTensor;
  return {
    async run() {
      (await compute()).dispose();
    },
    async result() {
      const value = await compute();
      const data = (await value.getData()) as Float32Array;
      const numbers =
        type === "float16"
          ? decodeArray(new Uint16Array(data.buffer, data.byteOffset, data.byteLength / 2), float16)
          : Float32Array.from(data);
      value.dispose();
      return Float32Array.from(numbers);
    },
  };
}

function onGpu(
  ort: OnnxLibrary["ort"],
  device: GPUDevice,
  data: Float32Array | Uint16Array,
  dataType: string,
  dims: readonly number[],
): OrtTensor {
  const buffer = device.createBuffer({
    size: Math.ceil(data.byteLength / 16) * 16,
    usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC,
  });
  device.queue.writeBuffer(buffer, 0, data as Float32Array<ArrayBuffer>);
  return ort.Tensor.fromGpuBuffer(buffer, { dataType, dims });
}
