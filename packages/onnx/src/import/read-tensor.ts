import { bfloat16, decodeArray, float16 } from "@halfstep/formats";
import { type DataType, dataType, isDataType, nameOfType } from "../data-type.js";
import { OnnxError } from "../errors.js";
import type { TensorProto } from "../schema/onnx_pb.js";
import {
  type ExternalFiles,
  type ExternalRange,
  externalRange,
  isExternal,
} from "./external-data.js";
import { countOf, HostTensor } from "./host-tensor.js";

/** How the elements of a type are stored: in raw bytes, or one by one in a field of the message. */
interface Storage {
  readonly bytes: number;
  /** Whether float32 holds all its numbers. */
  readonly isSingle?: true;
  readonly field: "floatData" | "int32Data" | "int64Data" | "doubleData" | "uint64Data";
  fromBytes(view: DataView, count: number): ArrayLike<number>;
  /** Of an element of the field. */
  fromField?(element: number): number;
}

const each =
  (bytes: number, get: (view: DataView, at: number) => number) =>
  (view: DataView, count: number): Float64Array =>
    new Float64Array(count).map((_, i) => get(view, i * bytes));

const codes = (view: DataView, count: number): Uint16Array =>
  new Uint16Array(count).map((_, i) => view.getUint16(2 * i, true));

const storages: Readonly<Record<DataType, Storage>> = {
  [dataType.FLOAT]: {
    bytes: 4,
    isSingle: true,
    field: "floatData",
    fromBytes: (view, count) => new Float32Array(count).map((_, i) => view.getFloat32(4 * i, true)),
  },
  [dataType.DOUBLE]: {
    bytes: 8,
    field: "doubleData",
    fromBytes: each(8, (view, at) => view.getFloat64(at, true)),
  },
  [dataType.FLOAT16]: {
    bytes: 2,
    isSingle: true,
    field: "int32Data",
    fromBytes: (view, count) => decodeArray(codes(view, count), float16),
    fromField: (code) => float16.decode(code & 0xffff),
  },
  [dataType.BFLOAT16]: {
    bytes: 2,
    isSingle: true,
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
 * The numbers of a tensor. Its shape is compared with the bytes that are there before any memory is allocated. Those of other files are
 * read when they are wanted.
 *
 * @param what the tensor's name in errors
 * @param files those beside the model
 */
export function readTensor(tensor: TensorProto, what: string, files?: ExternalFiles): HostTensor {
  const { dims, dataType: type, rawData } = tensor;
  if (!isDataType(type))
    throw new OnnxError(
      "unsupported",
      `${what} has ${nameOfType(type)}: convert it to float32, float16 or int64`,
    );
  const shape = dims.map(Number);
  const count = countOf(shape);
  if (
    shape.length > mostDimensions ||
    shape.some((size) => !(size >= 0)) ||
    !Number.isSafeInteger(8 * count)
  )
    throw new OnnxError(
      "malformed",
      `${what} has the shape [${shape.slice(0, 8)}]: save the model again`,
    );
  const { bytes, field, fromBytes, fromField = Number } = storages[type];
  if (isExternal(tensor)) {
    const { file, offset } = externalRange(tensor, what, count * bytes, files);
    return new HostTensor(type, shape, () =>
      inPieces(storages[type], count, { file, offset, what }),
    );
  }
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

/** Elements that are read of another file at once: at most 32 MiB. */
const pieceElements = 2 ** 22;

/** Numbers of another file, which is never in memory as a whole. */
function inPieces(
  { bytes, isSingle, fromBytes }: Storage,
  count: number,
  { file, offset, what }: ExternalRange & { readonly what: string },
): ArrayLike<number> {
  const values = allocated(count, isSingle === true, what);
  const piece = new Uint8Array(bytes * Math.min(count, pieceElements));
  for (let at = 0; at < count; at += pieceElements) {
    const length = Math.min(pieceElements, count - at);
    const read = piece.subarray(0, length * bytes);
    file.read(offset + at * bytes, read);
    values.set(fromBytes(new DataView(read.buffer, 0, read.length), length), at);
  }
  return values;
}

function allocated(count: number, isSingle: boolean, what: string): Float32Array | Float64Array {
  try {
    return isSingle ? new Float32Array(count) : new Float64Array(count);
  } catch {
    throw new OnnxError(
      "size",
      `${what} has ${count} elements, more than memory holds: use a smaller model`,
    );
  }
}

const wrongLength = (
  what: string,
  shape: readonly number[],
  needed: string,
  found: string,
): OnnxError =>
  new OnnxError(
    "malformed",
    `${what} has the shape [${shape}], which needs ${needed}, and the file has ${found}: save the model again`,
  );
