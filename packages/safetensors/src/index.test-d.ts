import { open } from "node:fs/promises";
import { expectTypeOf, test } from "vitest";
import {
  dtypeNames,
  readSafetensors,
  type SafetensorsDtype,
  type SafetensorsTensor,
  writeSafetensors,
  writeSafetensorsTo,
} from "./index.js";
import { openSafetensors, writeSafetensorsFile } from "./node.js";

/** As a state dict of `@halfstep/nn` has it. */
interface SavedTensor {
  readonly shape: readonly number[];
  readonly dtype: "float32" | "float16" | "bfloat16" | "int32" | "uint32";
  readonly data: Float32Array | Float64Array | Int32Array | Uint32Array;
}

test("a dtype decides the array of the data", () => {
  const { tensors } = readSafetensors(new ArrayBuffer(0));
  expectTypeOf(tensors).toEqualTypeOf<Readonly<Record<string, SafetensorsTensor>>>();
  const tensor = tensors.a as SafetensorsTensor;
  if (tensor.dtype === "F32") expectTypeOf(tensor.data).toEqualTypeOf<Float32Array>();
  if (tensor.dtype === "BF16") expectTypeOf(tensor.data).toEqualTypeOf<Uint16Array>();
  if (tensor.dtype === "I64") expectTypeOf(tensor.data).toEqualTypeOf<BigInt64Array>();
  // @ts-expect-error codes are no Float32Array
  writeSafetensors({ a: { dtype: "F16", shape: [1], data: new Float32Array(1) } });
  // @ts-expect-error spelled as in files
  writeSafetensors({ a: { dtype: "float32", shape: [1], data: new Float32Array(1) } });
  // @ts-expect-error deferred data needs a sink
  writeSafetensors({ a: { dtype: "F32", shape: [1], data: () => new Float32Array(1) } });
});

test("every dtype has a name outside", () => {
  expectTypeOf<keyof typeof dtypeNames>().toEqualTypeOf<SafetensorsDtype>();
  expectTypeOf(dtypeNames.F8_E4M3).toEqualTypeOf<"float8e4m3fn">();
});

test("state dicts come from tensors without a cast, and give some", () => {
  const saved = (tensor: SafetensorsTensor): SavedTensor | undefined => {
    const { dtype } = tensor;
    if (dtype === "F32" || dtype === "I32" || dtype === "U32")
      return { ...tensor, dtype: dtypeNames[dtype] };
    // Here decodeArray(tensor.data, formatOf(dtypeNames[dtype])) makes numbers of the codes.
    if (dtype === "F16" || dtype === "BF16")
      return { ...tensor, dtype: dtypeNames[dtype], data: new Float32Array(tensor.data.length) };
    return undefined;
  };
  expectTypeOf(saved).returns.toEqualTypeOf<SavedTensor | undefined>();
  const state: Record<string, SavedTensor> = {};
  writeSafetensors(
    Object.entries(state).flatMap(([name, { dtype, shape, data }]) =>
      dtype === "float32" && data instanceof Float32Array
        ? [[name, { dtype: "F32", shape, data }] as const]
        : [],
    ),
  );
});

test("files, handles and maps fit", async () => {
  const handle = await open("x");
  expectTypeOf(openSafetensors).toBeCallableWith(handle);
  expectTypeOf(openSafetensors).toBeCallableWith(new URL("file:///x"), { maxHeaderBytes: 1 });
  const tensors = new Map<string, SafetensorsTensor>();
  expectTypeOf(writeSafetensorsTo(handle, tensors)).toEqualTypeOf<Promise<number>>();
  expectTypeOf(writeSafetensorsFile("x", tensors)).toEqualTypeOf<Promise<void>>();
  const file = await openSafetensors("x");
  expectTypeOf(file).toExtend<AsyncDisposable>();
  // @ts-expect-error nothing is read before it is asked for
  file.tensors.a?.data;
});
