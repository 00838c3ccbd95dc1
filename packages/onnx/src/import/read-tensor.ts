import { bfloat16, decodeArray, float16 } from "@halfstep/formats";
import { type DataType, dataType, isDataType, nameOfType } from "../data-type.js";
import { OnnxError } from "../errors.js";
import type { TensorProto } from "../schema/onnx_pb.js";
import { countOf, HostTensor } from "./host-tensor.js";

/** How the elements of a type are stored: in raw bytes, or one by one in a field of the message. */
interface Storage {
  readonly bytes: number;
  readonly field: "floatData" | "int32Data" | "int64Data" | "doubleData" | "uint64Data";
  fromBytes(view: DataView, count: number): ArrayLike<number>;
  /** Of an element of the field. */
  fromField?(element: number): number;
}

const each =
  (bytes: number, get: (view: DataView, at: number) => number) =>
  (view: DataView, count: number): Float64Array =>
    Float64Array.from({ length: count }, (_, i) => get(view, i * bytes));

const codes = (view: DataView, count: number): Uint16Array =>
  Uint16Array.from({ length: count }, (_, i) => view.getUint16(2 * i, true));

const storages: Readonly<Record<DataType, Storage>> = {
  [dataType.FLOAT]: {
    bytes: 4,
    field: "floatData",
    fromBytes: (view, count) =>
      Float32Array.from({ length: count }, (_, i) => view.getFloat32(4 * i, true)),
  },
  [dataType.DOUBLE]: {
    bytes: 8,
    field: "doubleData",
    fromBytes: each(8, (view, at) => view.getFloat64(at, true)),
  },
  [dataType.FLOAT16]: {
    bytes: 2,
    field: "int32Data",
    fromBytes: (view, count) => decodeArray(codes(view, count), float16),
    fromField: (code) => float16.decode(code & 0xffff),
  },
  [dataType.BFLOAT16]: {
    bytes: 2,
    field: "int32Data",
    fromBytes: (view, count) => decodeArray(codes(view, count), bfloat16),
    fromField: (code) => bfloat16.decode(code & 0xffff),
  },
  [dataType.INT8]: {
    bytes: 1,
    field: "int32Data",
    fromBytes: each(1, (view, at) => view.getInt8(at)),
  },
  [dataType.UINT8]: {
    bytes: 1,
    field: "int32Data",
    fromBytes: each(1, (view, at) => view.getUint8(at)),
  },
  [dataType.BOOL]: {
    bytes: 1,
    field: "int32Data",
    fromBytes: each(1, (view, at) => view.getUint8(at)),
  },
  [dataType.INT16]: {
    bytes: 2,
    field: "int32Data",
    fromBytes: each(2, (view, at) => view.getInt16(at, true)),
  },
  [dataType.UINT16]: {
    bytes: 2,
    field: "int32Data",
    fromBytes: each(2, (view, at) => view.getUint16(at, true)),
  },
  [dataType.INT32]: {
    bytes: 4,
    field: "int32Data",
    fromBytes: each(4, (view, at) => view.getInt32(at, true)),
  },
  [dataType.UINT32]: {
    bytes: 4,
    field: "uint64Data",
    fromBytes: each(4, (view, at) => view.getUint32(at, true)),
  },
  [dataType.INT64]: {
    bytes: 8,
    field: "int64Data",
    fromBytes: each(8, (view, at) => Number(view.getBigInt64(at, true))),
  },
  [dataType.UINT64]: {
    bytes: 8,
    field: "uint64Data",
    fromBytes: each(8, (view, at) => Number(view.getBigUint64(at, true))),
  },
};

/** Dimensions of a tensor, which no file needs more of. */
const mostDimensions = 64;

/**
 * The numbers of a tensor. Its shape is compared with the bytes that are there before any memory is allocated.
 *
 * @param what the tensor's name in errors
 */
export function readTensor(tensor: TensorProto, what: string): HostTensor {
  const { dims, dataType: type, rawData, dataLocation, externalData } = tensor;
  if (dataLocation === 1 || externalData.length > 0)
    throw new OnnxError(
      "unsupported",
      `${what} lies in another file: save the model with all its data in one`,
    );
  if (!isDataType(type)) throw new OnnxError("unsupported", `${what} has ${nameOfType(type)}`);
  const shape = dims.map(Number);
  const count = countOf(shape);
  if (
    shape.length > mostDimensions ||
    shape.some((size) => !(size >= 0)) ||
    !Number.isSafeInteger(count)
  )
    throw new OnnxError("malformed", `${what} has the shape [${shape.slice(0, 8)}]`);
  const { bytes, field, fromBytes, fromField = Number } = storages[type];
  if (rawData.length > 0 || count === 0) {
    if (rawData.length !== count * bytes)
      throw wrongLength(what, shape, `${count * bytes} bytes`, `${rawData.length}`);
    const view = new DataView(rawData.buffer, rawData.byteOffset, rawData.byteLength);
    return new HostTensor(type, shape, fromBytes(view, count));
  }
  const elements = tensor[field] as readonly (number | bigint)[];
  if (elements.length !== count)
    throw wrongLength(what, shape, `${count} elements`, `${elements.length}`);
  const values = elements.map((element) => fromField(Number(element)));
  return new HostTensor(type, shape, values);
}

const wrongLength = (
  what: string,
  shape: readonly number[],
  needed: string,
  found: string,
): OnnxError =>
  new OnnxError(
    "malformed",
    `${what} has the shape [${shape}], which needs ${needed}, and the file has ${found}`,
  );
