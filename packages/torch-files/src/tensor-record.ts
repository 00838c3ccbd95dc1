import type { SafetensorsTensor } from "@halfstep/safetensors";
import { quote, TorchFileError } from "./error.js";
import { isCallOf, PickleGlobal, PickleObject, type PickleValue } from "./pickle/values.js";
import { isCount, type StorageRecord, storageOf } from "./storage.js";
import { type ElementType, elementTypeOf } from "./storage-types.js";

/** What a pickle says of a tensor. All numbers count elements of `type`. */
export interface TensorRecord {
  readonly type: ElementType;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly storage: StorageRecord;
  /** Where its first element is in the storage. */
  readonly offset: number;
  /** Elements from the first to the last in the storage; 0 for an empty tensor. */
  readonly span: number;
  readonly byteLength: number;
  /** Which elements in the storage have the other sign: torch makes views by `conj()`, and by `imag` of those, so. */
  readonly signs: Signs;
}

interface Signs {
  /** The imaginary parts. */
  readonly conj: boolean;
  /** All numbers, with the imaginary parts of `conj` twice. */
  readonly neg: boolean;
}

/** Bytes of a number whose last bit is its sign. */
const signedBytes: { readonly [D in ElementType["dtype"]]?: number } = {
  ...{ F64: 8, F32: 4, F16: 2, BF16: 2 },
  // Real and imaginary part in turn.
  C64: 4,
};

/** numpy's limit, and that of safetensors here. */
const maxRank = 64;

/** Parameters around tensors: torch wraps once, subclasses of tensors once more. */
const mostWrappers = 4;

const unread = [
  "_rebuild_sparse_tensor",
  "_rebuild_qtensor",
  "_rebuild_nested_tensor",
  "_rebuild_sparse_csr_tensor",
  "_rebuild_meta_tensor_no_storage",
  "_rebuild_wrapper_subclass",
  "_rebuild_device_tensor_from_numpy",
  "_rebuild_device_tensor_from_cpu_tensor",
].map((name) => `torch._utils.${name}`);

/**
 * The tensor that a value of a pickle is; undefined where it is none.
 * @throws TorchFileError for tensors of kinds that are not read, and for those that contradict themselves
 */
export function tensorRecordOf(
  value: PickleValue | undefined,
  place: { readonly source: string | undefined; readonly tensor: string },
): TensorRecord | undefined {
  let inner = value;
  for (let i = 0; i < mostWrappers; i++) {
    const args = inner instanceof PickleObject && Array.isArray(inner.args) ? inner.args : [];
    if (
      isCallOf(
        inner,
        "torch._utils._rebuild_parameter",
        "torch._utils._rebuild_parameter_with_state",
      )
    )
      inner = args[0];
    else if (isCallOf(inner, "torch._tensor._rebuild_from_type_v2"))
      inner = new PickleObject(args[0] ?? null, args[2] ?? null);
    else break;
  }
  if (isCallOf(inner, ...unread)) {
    const { name } = inner.callee as PickleGlobal;
    throw new TorchFileError(
      "unsupported",
      `is made by ${name}: sparse, quantized and similar tensors are not read; save it dense, as tensor.to_dense() or tensor.dequantize()`,
      place,
    );
  }
  const names = ["_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3"];
  if (!isCallOf(inner, ...names.map((name) => `torch._utils.${name}`))) return undefined;
  const args = Array.isArray(inner.args) ? (inner.args as readonly PickleValue[]) : [];
  if (isCallOf(args[0], "torch.storage._load_from_bytes"))
    throw new TorchFileError(
      "unsupported",
      "was written by pickle.dump(): write the file by torch.save()",
      place,
    );
  return checked(args, place);
}

function checked(
  args: readonly PickleValue[],
  place: { readonly source: string | undefined; readonly tensor: string },
): TensorRecord {
  const fail = (fact: string): never => {
    throw new TorchFileError("shape", fact, place);
  };
  const storage = storageOf(args[0], place.source);
  const dtype = args[6];
  // Before version 3 the storage has the dtype, and the seventh argument is the metadata that follows it since.
  const named =
    dtype instanceof PickleGlobal && dtype.module === "torch"
      ? elementTypeOf(dtype.name)
      : undefined;
  if (dtype instanceof PickleGlobal && named === undefined)
    throw new TorchFileError(
      "dtype",
      `has the dtype ${dtype.path}, which is not read here: convert it in Python`,
      place,
    );
  const type = named ?? storage.type;
  const shape = countsOf(args[2]);
  const strides = countsOf(args[3]);
  const start = args[1];
  if (!shape || !strides || !isCount(start) || shape.length !== strides.length)
    return fail("its offset, size and strides are not as torch.save() writes them");
  if (shape.length > maxRank) return fail(`has ${shape.length} dimensions, more than ${maxRank}`);
  const size = product(shape, fail);
  const steps = shape.map((length, d) => Math.max(length - 1, 0) * (strides[d] as number));
  const span = size === 0 ? 0 : steps.reduce((sum, step) => sum + step, 1);
  const capacity = Math.floor((storage.count * storage.type.bytes) / type.bytes);
  const offset = start + (storage.offset * storage.type.bytes) / type.bytes;
  if (size > 0 && !(offset + span <= capacity))
    return fail(
      `[${shape}] with strides [${strides}] from element ${offset} on ends after its storage, which has ${capacity} elements`,
    );
  const signs = signsOf(args[named ? 7 : 6], type, place);
  return { type, shape, strides, storage, offset, span, byteLength: size * type.bytes, signs };
}

/** What the metadata of a tensor, a dict of bits that are set, says of its signs. */
function signsOf(
  metadata: PickleValue | undefined,
  { dtype }: ElementType,
  place: { readonly source: string | undefined; readonly tensor: string },
): Signs {
  const bits = metadata instanceof Map ? metadata : new Map<PickleValue, PickleValue>();
  if (bits !== metadata && metadata !== undefined && metadata !== null)
    throw new TorchFileError("shape", "its metadata is not as torch.save() writes it", place);
  const isSet = (bit: string): boolean => bits.get(bit) === true;
  const signs = { conj: isSet("conj"), neg: isSet("neg") };
  const strange = [...bits].find(([bit, value]) => bit !== "conj" && bit !== "neg" && value);
  if (strange || (signs.neg && !signedBytes[dtype]) || (signs.conj && dtype !== "C64"))
    throw new TorchFileError(
      "unsupported",
      `is a view of ${dtype} with the bits ${quote([...bits.keys()].map(String).join(", "))}, which is not read: save a copy, as tensor.resolve_conj().resolve_neg()`,
      place,
    );
  return signs;
}

/** A tuple of whole numbers, or a `torch.Size` of one. */
function countsOf(value: PickleValue | undefined): readonly number[] | undefined {
  const tuple =
    isCallOf(value, "torch.Size") && Array.isArray(value.args)
      ? (value.args[0] as PickleValue)
      : value;
  return Array.isArray(tuple) && tuple.every(isCount) ? (tuple as readonly number[]) : undefined;
}

function product(shape: readonly number[], fail: (fact: string) => never): number {
  let total = 1;
  for (const length of shape) {
    total *= length;
    // Sixteen bytes an element at most.
    if (total > Number.MAX_SAFE_INTEGER / 16) fail(`[${shape}] overflows 2^53 bytes`);
  }
  return total;
}

/**
 * The tensor of these bytes, which reach from its first to its last element in the storage.
 */
export function tensorFrom(
  record: TensorRecord,
  bytes: Uint8Array<ArrayBuffer>,
): SafetensorsTensor {
  const { type, shape, signs } = record;
  const { buffer } = isContiguous(record) ? bytes : gathered(record, bytes);
  applySigns(signs, type, new Uint8Array(buffer));
  return { dtype: type.dtype, shape, data: new type.array(buffer) } as SafetensorsTensor;
}

/** Turns the signs that the storage has to those that the tensor has, in place. */
function applySigns({ conj, neg }: Signs, { dtype }: ElementType, bytes: Uint8Array): void {
  const width = signedBytes[dtype];
  if (width === undefined || !(conj || neg)) return;
  for (let end = width, isImaginary = false; end <= bytes.length; end += width) {
    if (neg !== (conj && isImaginary)) bytes[end - 1] = (bytes[end - 1] as number) ^ 0x80;
    isImaginary = !isImaginary;
  }
}

/** Whether the elements lie one after the other in row-major order. */
function isContiguous({ shape, strides, byteLength }: TensorRecord): boolean {
  if (byteLength === 0) return true;
  let expected = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    if (shape[d] !== 1 && strides[d] !== expected) return false;
    expected *= shape[d] as number;
  }
  return true;
}

/** Elements of a size, whatever they mean. */
const words = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: BigUint64Array } as const;

function gathered(
  { type, shape, strides, byteLength }: TensorRecord,
  bytes: Uint8Array<ArrayBuffer>,
): { readonly buffer: ArrayBuffer } {
  const Words = words[type.bytes];
  const from = new Words(bytes.buffer);
  const to = new Words(byteLength / type.bytes);
  const last = shape.length - 1;
  const [count, step] = [shape[last] as number, strides[last] as number];
  const places = new Array<number>(last).fill(0);
  for (let at = 0, source = 0; at < to.length; ) {
    for (let i = 0; i < count; i++) to[at++] = from[source + i * step] as number & bigint;
    for (let d = last - 1; d >= 0; d--) {
      source += strides[d] as number;
      places[d] = (places[d] as number) + 1;
      if ((places[d] as number) < (shape[d] as number)) break;
      source -= (strides[d] as number) * (shape[d] as number);
      places[d] = 0;
    }
  }
  return to;
}
