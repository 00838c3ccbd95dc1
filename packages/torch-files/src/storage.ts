import { quote, TorchFileError } from "./error.js";
import { PickleGlobal, PickleReference, type PickleValue } from "./pickle/values.js";
import { type ElementType, storageTypeOf } from "./storage-types.js";

/** What a pickle says of a storage. */
export interface StorageRecord {
  readonly type: ElementType;
  /** Its name in the file. */
  readonly key: string;
  /** Elements. */
  readonly count: number;
  /** Where it starts in the storage of that key, in elements: files of torch before 0.4 have views. */
  readonly offset: number;
}

/**
 * What a reference says of a storage: `("storage", class, key, device, elements)`, and in legacy files a view of it or None.
 * @throws TorchFileError where it is no such reference
 */
export function storageOf(
  value: PickleValue | undefined,
  source: string | undefined,
): StorageRecord {
  const fail = (fact: string): never => {
    throw new TorchFileError("pickle", `a reference to a storage ${fact}`, { source });
  };
  if (!(value instanceof PickleReference) || !Array.isArray(value.id))
    return fail("is not as torch.save() writes it");
  const [kind, type, key, , count, view = null] = value.id as readonly PickleValue[];
  if (kind !== "storage" || !(type instanceof PickleGlobal) || typeof key !== "string")
    return fail("is not as torch.save() writes it");
  const elements = storageTypeOf(type.name);
  if (elements === undefined)
    throw new TorchFileError(
      "dtype",
      `a storage is of the type ${quote(type.path)}, which is not read here: convert the model in Python, for a quantized one by dequantize()`,
      { source },
    );
  if (!isCount(count)) return fail(`says that it has ${String(count).slice(0, 40)} elements`);
  if (view === null) return { type: elements, key, count, offset: 0 };
  const [, offset, size] = Array.isArray(view) ? (view as readonly PickleValue[]) : [];
  if (!isCount(offset) || !isCount(size) || offset + size > count)
    return fail("is a view beyond its end");
  return { type: elements, key, count, offset };
}

/** Whether a value is a whole number from 0 to 2^53 − 1. */
export const isCount = (value: PickleValue | undefined): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;
