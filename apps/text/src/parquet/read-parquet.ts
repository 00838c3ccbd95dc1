import { DataError } from "@halfstep/data";
import { fileBytes } from "@halfstep/data/node";
import {
  type ColumnMetaData,
  type FileMetaData,
  parquetMetadata,
  parquetReadObjects,
  type RowGroup,
  type SchemaTree,
} from "hyparquet";
import { getSchemaPath } from "hyparquet/src/schema.js";
import { type ClassNames, classNamesIn } from "./class-names.js";
import { compressors } from "./compressors.js";
import { structEnd } from "./thrift.js";
import { type Budget, requireCount, vetColumn } from "./vet-column.js";

/** A Parquet file that is open: its columns are known, and none is read yet. */
export interface ParquetFile {
  readonly columns: readonly string[];
  /** Names of the classes that columns have as numbers, as data sets of Hugging Face say them. */
  readonly classNames: ClassNames;
  /** The rows, with some columns: texts, numbers, booleans, or lists of them. @throws DataError */
  rows(columns: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]>;
}

/**
 * Opens a Parquet file. Nothing that it announces is allocated before its length makes it likely.
 * @throws DataError
 */
export async function openParquet(path: string): Promise<ParquetFile> {
  const bytes = await fileBytes(path);
  const { metadata, columns } = await refusing(path, () => {
    const metadata = metadataOf(bytes);
    const [root] = getSchemaPath(metadata.schema, []);
    return { metadata, columns: root?.children.map(({ element }) => element.name) ?? [] };
  });
  return {
    columns,
    classNames: classNamesIn(path, metadata.key_value_metadata),
    rows: async (wanted) => {
      const missing = wanted.find((name) => !columns.includes(name));
      if (missing !== undefined)
        throw new DataError(
          path,
          `has no column ${JSON.stringify(missing)}: it has ${columns.slice(0, 30).join(", ")}, and flags such as --text-column say which are meant`,
        );
      return refusing(path, () => readRows(bytes, metadata, wanted));
    },
  };
}

/** @throws DataError in place of whatever is thrown */
async function refusing<T>(path: string, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    const reason = (error as Error).message.replace(/\s+/g, " ").slice(0, 200);
    throw new DataError(
      path,
      `is no Parquet file that can be read (${reason}): restore it, or download it again`,
    );
  }
}

const magic = [0x50, 0x41, 0x52, 0x31] as const;

/** The description at the end of the file, in front of its length and the magic number. */
function metadataOf(bytes: Uint8Array<ArrayBuffer>): FileMetaData {
  const isMagic = (at: number): boolean => magic.every((byte, i) => bytes[at + i] === byte);
  if (bytes.length < 12 || !isMagic(0))
    throw new RangeError(`its ${bytes.length} bytes do not begin with PAR1`);
  const end = bytes.length - 8;
  if (!isMagic(end + 4)) throw new RangeError("it does not end with PAR1, so it is cut off");
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(end, true);
  structEnd(bytes.subarray(0, end), end - requireCount(length, end - 4, "bytes of description"));
  return parquetMetadata(bytes, { geoparquet: false });
}

/** Texts, numbers and booleans, and lists of them. */
const leafTypes = new Set(["BYTE_ARRAY", "INT32", "INT64", "BOOLEAN", "FLOAT", "DOUBLE"]);
const leafKinds = /^(UTF8|U?INT_\d+|STRING|INTEGER)$/;

async function readRows(
  bytes: Uint8Array<ArrayBuffer>,
  metadata: FileMetaData,
  wanted: readonly string[],
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  // Of data that repeats itself a compressed file may be a hundred times as long; of more, it is no data set.
  const budget = { values: 2 ** 20 + 16 * bytes.length, bytes: 2 ** 24 + 256 * bytes.length };
  for (const group of metadata.row_groups) vetGroup(bytes, metadata, group, wanted, budget);
  const text = new TextDecoder("utf-8", { fatal: true });
  return parquetReadObjects({
    file: { byteLength: bytes.length, slice: (start, end) => bytes.slice(start, end).buffer },
    metadata,
    compressors,
    columns: [...wanted],
    parsers: { stringFromBytes: (given: Uint8Array) => text.decode(given) },
  });
}

/** Checks all that is read of a row group. */
function vetGroup(
  bytes: Uint8Array<ArrayBuffer>,
  metadata: FileMetaData,
  group: RowGroup,
  wanted: readonly string[],
  budget: Budget,
): void {
  const rows = requireCount(Number(group.num_rows), budget.values, "rows");
  // A file whose columns are the same bytes again and again may be long in time, too.
  let unread = bytes.length;
  for (const { meta_data: meta } of group.columns) {
    if (!meta || !wanted.includes(meta.path_in_schema[0] as string)) continue;
    const schemaPath = schemaPathOf(metadata, meta);
    const start = Number(meta.dictionary_page_offset || meta.data_page_offset);
    requireCount(start, bytes.length, "bytes before a column");
    const length = requireCount(Number(meta.total_compressed_size), unread, "bytes of a column");
    requireCount(start + length, bytes.length, "bytes of columns");
    unread -= length;
    const part = { bytes: bytes.slice(start, start + length), meta, schemaPath };
    const values = vetColumn(part, budget);
    const isFlat = schemaPath.length === 2;
    if (isFlat ? values !== rows : values < rows)
      throw new RangeError(`it has ${values} values of a column in ${rows} rows`);
  }
}

/** @throws RangeError for columns of structures, and of types that are no texts or numbers */
function schemaPathOf(metadata: FileMetaData, meta: ColumnMetaData): SchemaTree[] {
  const path = meta.path_in_schema;
  const schemaPath = getSchemaPath(metadata.schema, path);
  const [, column] = schemaPath;
  const { element, children } = schemaPath.at(-1) as SchemaTree;
  const kind = element.logical_type?.type ?? element.converted_type ?? "STRING";
  const isList = schemaPath.length === 4 && column?.children.length === 1;
  if (
    (schemaPath.length !== 2 && !isList) ||
    children.length > 0 ||
    element.type !== meta.type ||
    !leafTypes.has(meta.type) ||
    !leafKinds.test(kind)
  )
    throw new RangeError(
      `the column ${JSON.stringify(path[0])} has no texts, numbers or lists of them`,
    );
  return schemaPath;
}
