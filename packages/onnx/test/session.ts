import { decodeArray, encodeArray, float16 } from "@halfstep/formats";
import { InferenceSession, Tensor as OrtTensor } from "@halfstep/onnxruntime";
import type { Tensor } from "@halfstep/tensor";

/** Runs a file by ONNX Runtime on the CPU, and returns the numbers of each output. Inputs that are masks are named. */
export async function runOnnx(
  bytes: Uint8Array,
  inputs: Readonly<Record<string, Tensor>>,
  masks: readonly string[] = [],
): Promise<
  Readonly<Record<string, { readonly values: number[]; readonly dims: readonly number[] }>>
> {
  const session = await InferenceSession.create(bytes, {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    // Errors alone.
    logSeverityLevel: 3,
  });
  const feeds: Record<string, OrtTensor> = {};
  for (const [name, tensor] of Object.entries(inputs)) {
    const numbers = await tensor.toArray();
    if (masks.includes(name))
      feeds[name] = new OrtTensor("bool", Uint8Array.from(numbers), tensor.shape);
    else if (tensor.dtype === "uint32" || tensor.dtype === "int32")
      feeds[name] = new OrtTensor(
        "int64",
        BigInt64Array.from(numbers as Uint32Array, BigInt),
        tensor.shape,
      );
    else if (tensor.dtype === "float16")
      feeds[name] = new OrtTensor("float16", encodeArray(numbers, float16) as never, tensor.shape);
    else feeds[name] = new OrtTensor("float32", Float32Array.from(numbers), tensor.shape);
  }
  const results = await session.run(feeds);
  await session.release();
  return Object.fromEntries(
    Object.entries(results).map(([name, { data, dims, type }]) => {
      const values =
        type === "float16"
          ? decodeArray(
              new Uint16Array(
                (data as Uint16Array).buffer,
                (data as Uint16Array).byteOffset,
                data.length,
              ),
              float16,
            )
          : data;
      return [name, { values: Array.from(values as Float32Array, Number), dims }];
    }),
  );
}
