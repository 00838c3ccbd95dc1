import yauzl, { type Entry } from "yauzl";
import type { ByteSource } from "./byte-source.js";
import { TorchFileError } from "./error.js";

/** A record of an archive of torch's. */
export interface ArchiveRecord {
  readonly byteLength: number;
  /** Where its bytes start in the file. */
  position(): Promise<number>;
}

/** A zip archive of torch's: names without the folder that all records are in. */
export interface Archive {
  readonly records: ReadonlyMap<string, ArchiveRecord>;
}

/** Records of an archive: a checkpoint has one for each storage. */
const mostRecords = 1_000_000;

/**
 * Reads the directory of a zip archive. Nothing is unpacked: torch stores its records as they are.
 * @throws TorchFileError where it is damaged, compressed or encrypted
 */
export async function openArchive(source: ByteSource): Promise<Archive> {
  const fail = (fact: string): never => {
    throw new TorchFileError("archive", fact, { source: source.name });
  };
  const zip = await orDamaged(source, () =>
    yauzl.fromRandomAccessReaderPromise(new SourceReader(source), source.size, {
      autoClose: false,
      strictFileNames: true,
    }),
  );
  if (zip.entryCount > mostRecords) fail(`the archive has ${zip.entryCount} records`);
  const entries: Entry[] = [];
  await orDamaged(source, async () => {
    for await (const entry of zip.eachEntry()) entries.push(entry);
  });
  const records = new Map<string, ArchiveRecord>();
  for (const entry of entries) {
    const { fileName, compressedSize, uncompressedSize } = entry;
    if (fileName.endsWith("/")) continue;
    const name = fileName.slice(fileName.indexOf("/") + 1);
    if (records.has(name)) fail(`the archive has ${JSON.stringify(name)} twice`);
    if (entry.isEncrypted()) fail("the archive is encrypted: unpack it with its password first");
    const byteLength = entry.isCompressed() ? undefined : uncompressedSize;
    records.set(name, {
      get byteLength() {
        if (byteLength === undefined || compressedSize !== byteLength)
          fail(
            "the archive is compressed, which torch.save() never does: unpack the zip file and look for the checkpoint in it, or save it again by torch.save()",
          );
        return byteLength as number;
      },
      position: async () =>
        (await orDamaged(source, () => zip.readLocalFileHeaderPromise(entry, { minimal: true })))
          .fileDataStart,
    });
  }
  return { records };
}

/** The bytes of a record. */
export async function readRecord(
  source: ByteSource,
  record: ArchiveRecord,
): Promise<Uint8Array<ArrayBuffer>> {
  const { byteLength } = record;
  return source.read(await record.position(), byteLength);
}

/** What yauzl finds wrong, as an error of this package. */
async function orDamaged<T>(source: ByteSource, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof TorchFileError || !(error instanceof Error) || "code" in error)
      throw error;
    throw new TorchFileError(
      "archive",
      `the zip archive is damaged or cut off: download or copy it again (${error.message.slice(0, 120)})`,
      { source: source.name },
    );
  }
}

/** The directory is read in pieces of this many bytes. */
const windowBytes = 2 ** 16;

/** Reads for yauzl, which asks for the directory in pieces of some ten bytes. */
class SourceReader extends yauzl.RandomAccessReader {
  readonly #source: ByteSource;
  #window: { readonly start: number; readonly bytes: Uint8Array } = {
    start: 0,
    bytes: new Uint8Array(0),
  };

  constructor(source: ByteSource) {
    super();
    this.#source = source;
  }

  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null) => void,
  ): void {
    this.#bytes(position, length).then(
      (bytes) => {
        buffer.set(bytes, offset);
        callback(null);
      },
      (error: Error) => callback(error),
    );
  }

  async #bytes(position: number, length: number): Promise<Uint8Array> {
    const { start, bytes } = this.#window;
    if (position < start || position + length > start + bytes.length) {
      const most = Math.max(0, this.#source.size - position);
      const window = await this.#source.read(
        position,
        Math.max(length, Math.min(windowBytes, most)),
      );
      this.#window = { start: position, bytes: window };
    }
    const at = position - this.#window.start;
    return this.#window.bytes.subarray(at, at + length);
  }
}
