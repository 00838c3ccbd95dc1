import type { ByteSource } from "./byte-source.js";
import { TorchFileError } from "./error.js";
import { EndOfPickle, type Pickled } from "./pickle/unpickle.js";
import { unpickleHarmless } from "./pickle/unpickle-harmless.js";
import { PickleGlobal, type PickleReference, type PickleValue } from "./pickle/values.js";
import { isCount, storageOf } from "./storage.js";

/** A checkpoint that torch before 1.6 wrote, and later with `_use_new_zipfile_serialization=False`. */
export interface LegacyFile {
  readonly pickled: Pickled;
  /** Where the elements of each storage start in the file. */
  readonly positions: ReadonlyMap<string, number>;
}

/** The first pickle of such a file. */
const magicNumber = 0x1950a86a20f9469cfc6cn;
const protocolVersion = 1001;

/**
 * Reads the pickles of a legacy checkpoint: a magic number, a version, facts of the system, the object, and the keys of its storages. The
 * storages follow in the order of the keys, each after its number of elements.
 * @param mostBytes that all pickles may have
 * @throws TorchFileError for another pickle, and where the storages are not as the pickle says
 */
export async function readLegacy(source: ByteSource, mostBytes: number): Promise<LegacyFile> {
  const { name } = source;
  const pickles = await readPickles(source, mostBytes);
  const [, , system, pickled, keys] = pickles as [Pickled, Pickled, Pickled, Pickled, Pickled];
  if (system.value instanceof Map && system.value.get("little_endian") === false)
    throw new TorchFileError(
      "unsupported",
      "was written on a big-endian machine: load and save it on a little-endian one",
      { source: name },
    );
  const storages = pickled.references.filter((reference) => !isModuleClass(reference));
  const records = new Map(
    storages.map((reference) => {
      const storage = storageOf(reference, name);
      return [storage.key, storage] as const;
    }),
  );
  const positions = new Map<string, number>();
  let at = keys.end;
  for (const key of listOf(keys.value)) {
    const record = typeof key === "string" ? records.get(key) : undefined;
    if (record === undefined)
      throw new TorchFileError("storage", "has a storage that its pickle does not name", {
        source: name,
      });
    const length = await source.read(at, 8);
    const count = Number(new DataView(length.buffer).getBigUint64(0, true));
    if (!isCount(count) || count !== record.count)
      throw new TorchFileError(
        "storage",
        `a storage has ${count} elements, and its pickle says ${record.count}`,
        { source: name },
      );
    positions.set(record.key, at + 8);
    at += 8 + count * record.type.bytes;
    if (at > source.size)
      throw new TorchFileError(
        "truncated",
        `a storage of ${count * record.type.bytes} bytes ends at ${at}, and the file has ${source.size} bytes: download or copy it again`,
        { source: name },
      );
  }
  return { pickled, positions };
}

/** The five pickles. Their length stands nowhere, so that the file is read from its start until they are whole. */
async function readPickles(source: ByteSource, mostBytes: number): Promise<readonly Pickled[]> {
  for (let length = 2 ** 16; ; length *= 4) {
    const most = Math.min(length, source.size, mostBytes);
    const bytes = await source.read(0, most);
    try {
      return parsePickles(bytes, source.name);
    } catch (error) {
      if (!(error instanceof EndOfPickle) || most === source.size) throw error;
      if (most === mostBytes)
        throw new TorchFileError(
          "too-large",
          `its pickles have more than ${mostBytes} bytes: raise the option maxPickleBytes`,
          { source: source.name },
        );
    }
  }
}

function parsePickles(bytes: Uint8Array, source: string | undefined): readonly Pickled[] {
  const pickles: Pickled[] = [];
  const refuse = (): never => {
    throw new TorchFileError(
      "kind",
      "is a pickle, but none that torch.save() wrote: load it in Python where you trust it, and write the state_dict() by torch.save()",
      { source },
    );
  };
  for (let i = 0; i < 5; i++) {
    const pickled = unpickleHarmless(bytes, { source, start: pickles.at(-1)?.end ?? 0 });
    if (i === 0 && pickled.value !== magicNumber) refuse();
    if (i === 1 && pickled.value !== protocolVersion) refuse();
    pickles.push(pickled);
  }
  return pickles;
}

/** `("module", class, file, source)`: the class of a module that was saved whole, where it is written first. */
const isModuleClass = ({ id }: PickleReference): boolean =>
  Array.isArray(id) && id[0] === "module" && id[1] instanceof PickleGlobal;

const listOf = (value: PickleValue): readonly PickleValue[] => (Array.isArray(value) ? value : []);
