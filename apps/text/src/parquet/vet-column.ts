import type { ColumnMetaData, SchemaTree } from "hyparquet";
import { parquetHeader } from "hyparquet/src/column.js";
import { decompressPage } from "hyparquet/src/datapage.js";
import { getMaxDefinitionLevel, getMaxRepetitionLevel } from "hyparquet/src/schema.js";
import { compressors } from "./compressors.js";
import { structEnd } from "./thrift.js";

/** What a file may still become in memory. */
export interface Budget {
  values: number;
  bytes: number;
}

/** The part of a row group that has a column's values. */
export interface ColumnPart {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly meta: ColumnMetaData;
  /** From the root of the schema to the column. */
  readonly schemaPath: SchemaTree[];
}

type Header = ReturnType<typeof parquetHeader>;

/** Encodings whose values take the bytes that they have, or whose runs {@link requireRuns} counts. */
const encodings = new Set(["PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE"]);

/**
 * Checks the pages of a column's part, and takes from the budget what they become. The library that reads them trusts every count: of values,
 * of bytes behind a decompression, and of repetitions in a run.
 * @throws RangeError for pages that a reader must not follow
 */
export function vetColumn({ bytes, meta, schemaPath }: ColumnPart, budget: Budget): number {
  const levels = [getMaxRepetitionLevel(schemaPath), getMaxDefinitionLevel(schemaPath)] as const;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let dictionary: number | undefined;
  let values = 0;
  // As the library: a last byte alone is no page.
  for (let at = 0; at < bytes.length - 1; ) {
    structEnd(bytes, at);
    const reader = { view, offset: at };
    const header = parquetHeader(reader);
    const { compressed_page_size: size, uncompressed_page_size: unpacked } = header;
    at = reader.offset + requireCount(size, bytes.length - reader.offset, "bytes of a page");
    budget.bytes -= requireCount(unpacked, budget.bytes, "bytes");
    const page = bytes.subarray(reader.offset, at);
    if (header.type === "DICTIONARY_PAGE") {
      dictionary = countOf(header.dictionary_page_header?.num_values, budget);
      continue;
    }
    const part = header.data_page_header ?? header.data_page_header_v2;
    const count = countOf(part?.num_values, budget);
    const encoding = part?.encoding ?? "";
    if (!encodings.has(encoding))
      throw new RangeError(
        `the column ${JSON.stringify(meta.path_in_schema[0])} has the encoding ${encoding}: write the file again with dictionaries or plain values, as pandas does`,
      );
    if (encoding.endsWith("DICTIONARY") && !dictionary && count > 0)
      throw new RangeError("it refers to a dictionary that it lacks");
    const runs = header.type === "DATA_PAGE_V2" ? runsOf2 : runsOf1;
    for (const run of runs(page, header, { meta, levels, count })) requireRuns(run, count);
    values += count;
  }
  return values;
}

/** What decides which runs a page has. */
interface Layout {
  readonly meta: ColumnMetaData;
  /** Most repetition and definition levels. */
  readonly levels: readonly [number, number];
  readonly count: number;
}

/** Bytes with runs of numbers of so many bits. */
interface Runs {
  readonly bytes: Uint8Array;
  readonly width: number;
}

/** The runs of a page of the first version: its levels have their lengths before them, and all is compressed. */
function* runsOf1(page: Uint8Array, header: Header, { meta, levels, count }: Layout) {
  const unpacked = decompressPage(page, header.uncompressed_page_size, meta.codec, compressors);
  let at = 0;
  for (const level of levels.filter((most) => most > 0)) {
    const bytes = withLength(unpacked, at);
    at += 4 + bytes.length;
    yield { bytes, width: widthOf(level) };
  }
  yield* valueRuns(unpacked.subarray(at), header.data_page_header?.encoding, meta, count);
}

/** The runs of a page of the second version: the header has the lengths of the levels, which are not compressed. */
function* runsOf2(page: Uint8Array, header: Header, { meta, levels, count }: Layout) {
  const part = header.data_page_header_v2;
  if (!part) throw new RangeError("it has a page without its header");
  let at = 0;
  for (const [i, level] of levels.entries()) {
    const given = i === 0 ? part.repetition_levels_byte_length : part.definition_levels_byte_length;
    const length = requireCount(given, page.length - at, "bytes of levels");
    if (level > 0) yield { bytes: page.subarray(at, at + length), width: widthOf(level) };
    at += length;
  }
  requireCount(part.num_nulls, count, "nulls");
  const rest = page.subarray(at);
  const unpacked =
    part.is_compressed === false
      ? rest
      : decompressPage(rest, header.uncompressed_page_size - at, meta.codec, compressors);
  yield* valueRuns(unpacked, part.encoding, meta, count);
}

/** The runs of the values, where they are written in runs: places in a dictionary, and booleans. */
function* valueRuns(
  bytes: Uint8Array,
  encoding: string | undefined,
  { type }: ColumnMetaData,
  count: number,
): Generator<Runs> {
  if (encoding === "PLAIN" || count === 0) return;
  if (type === "BOOLEAN") yield { bytes: withLength(bytes, 0), width: 1 };
  else {
    const [width = 33] = bytes;
    if (width > 32) throw new RangeError(`it has numbers of ${width} bits`);
    yield { bytes: bytes.subarray(1), width };
  }
}

/** What follows its length. */
function withLength(bytes: Uint8Array, at: number): Uint8Array {
  if (bytes.length < at + 4) throw new RangeError("it has a page that is too short");
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(at, true);
  requireCount(length, bytes.length - at - 4, "bytes of levels");
  return bytes.subarray(at + 4, at + 4 + length);
}

/** Follows the runs of repeated and of packed numbers until there are so many. */
function requireRuns({ bytes, width }: Runs, count: number): void {
  let at = 0;
  for (let seen = 0; seen < count; ) {
    let header = 0;
    for (let i = 0; ; i++) {
      const byte = bytes[at++];
      if (byte === undefined || i > 4) throw new RangeError("it has a run without an end");
      header += (byte & 127) * 2 ** (7 * i);
      if (byte < 128) break;
    }
    const isPacked = header % 2 === 1;
    const length = Math.floor(header / 2) * (isPacked ? 8 : 1);
    // A last run may be filled up to a multiple of eight. Nulls have no value, so that there are fewer values than the page counts.
    if (length > (isPacked ? count + 504 : count - seen + 7))
      throw new RangeError(`it has a run of ${length} in ${count} values`);
    at += isPacked ? (length / 8) * width : Math.ceil(width / 8);
    seen += length;
    if (at >= bytes.length) return;
  }
}

const widthOf = (level: number): number => 32 - Math.clz32(level);

/** Takes values from the budget. */
function countOf(given: number | undefined, budget: Budget): number {
  const count = requireCount(given, budget.values, "values");
  budget.values -= count;
  return count;
}

/** @throws RangeError for a count that is none, or beyond the most */
export function requireCount(given: number | undefined, most: number, what: string): number {
  if (given === undefined || !(given >= 0 && given <= most))
    throw new RangeError(`it announces ${given} ${what}, more than its length is likely to hold`);
  return given;
}
