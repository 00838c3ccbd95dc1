import { gzipSync } from "node:zlib";
import { parquetMetadata } from "hyparquet";
import { type ColumnSource, parquetWriteBuffer, type SchemaElement } from "hyparquet-writer";

/** A Parquet file, as other writers than the tested reader make it. */
export const parquetOf = (
  columnData: ColumnSource[],
  features?: Readonly<Record<string, unknown>>,
  options: { readonly codec?: "GZIP" | "UNCOMPRESSED"; readonly schema?: SchemaElement[] } = {},
): Uint8Array<ArrayBuffer> =>
  new Uint8Array(
    parquetWriteBuffer({
      columnData,
      ...options,
      compressors: { GZIP: (bytes) => new Uint8Array(gzipSync(bytes)) },
      ...(features && {
        kvMetadata: [{ key: "huggingface", value: JSON.stringify({ info: { features } }) }],
      }),
    }),
  );

const rows = 20;
const columns: ColumnSource[] = [
  { name: "text", data: Array.from({ length: rows }, (_, i) => `text ${i}`), type: "STRING" },
  { name: "label", data: Array.from({ length: rows }, (_, i) => i % 2), type: "INT32" },
];
const whole = parquetOf(columns, undefined, { codec: "UNCOMPRESSED" });

/** A number of Thrift's compact protocol. */
const varint = (value: number): readonly number[] =>
  value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];

/** The file with other bytes as its description. */
function described(description: readonly number[]): Uint8Array {
  const { metadata_length: length } = parquetMetadata(whole);
  const body = whole.subarray(0, whole.length - 8 - length);
  const end = new Uint8Array(8);
  new DataView(end.buffer).setUint32(0, description.length, true);
  end.set(new TextEncoder().encode("PAR1"), 4);
  return Uint8Array.of(...body, ...description, ...end);
}

const repeated = (count: number, ...bytes: readonly number[]): readonly number[] =>
  Array.from({ length: count }, () => bytes).flat();

/** A number with a sign. */
const zigzag = (value: number): readonly number[] => varint(value < 0 ? -2 * value - 1 : 2 * value);

/** The file with another page of texts, of so many values in an encoding. What is left of its place is filled with zeros. */
function paged(
  values: number,
  encoding: number,
  body: readonly number[],
  size?: number,
  unpacked?: number,
): Uint8Array {
  const { row_groups: groups } = parquetMetadata(whole);
  const meta = groups[0]?.columns[0]?.meta_data;
  if (!meta) throw new Error("the file has no columns");
  const start = Number(meta.dictionary_page_offset ?? meta.data_page_offset);
  const place = Number(meta.total_compressed_size);
  const header = (length: number): readonly number[] => [
    ...[0x15, 0, 0x15, ...zigzag(unpacked ?? length), 0x15, ...zigzag(size ?? length)],
    ...[0x2c, 0x15, ...zigzag(values), 0x15, ...zigzag(encoding), 0x15, 6, 0x15, 6, 0, 0],
  ];
  const rest = place - header(place).length;
  const page = [...header(rest), ...body];
  const bytes = whole.slice();
  bytes.fill(0, start, start + place);
  bytes.set(page.slice(0, place), start);
  return bytes;
}

function* cases(): Generator<readonly [name: string, bytes: Uint8Array]> {
  for (let i = 0; i < 24; i++)
    yield [`cut after ${i}/24`, whole.subarray(0, Math.floor((i * whole.length) / 24))];
  const text = (characters: string): Uint8Array => new TextEncoder().encode(characters);
  yield ["a Git LFS pointer", text("version https://git-lfs.github.com/spec/v1\noid sha256:46\n")];
  yield ["a web page", text("<!DOCTYPE html><html><body>Not found</body></html>")];
  yield ["rows of CSV", text("text,label\ngood,1\nbad,0\n")];
  yield ["the magic number alone", text("PAR1PAR1PAR1")];
  yield ["zeros", new Uint8Array(1000)];
  yield ["an encrypted description", whole.with(whole.length - 1, 0x45)];
  const { metadata_length: length } = parquetMetadata(whole);
  for (const size of [0, 1, length - 1, length + 1, 2 ** 31, 2 ** 32 - 1]) {
    const bytes = whole.slice();
    new DataView(bytes.buffer).setUint32(bytes.length - 8, size, true);
    yield [`a description of ${size} bytes`, bytes];
  }
  // Field 2 is the schema, a list of structs; 3 the number of rows.
  yield ["no schema", described([0])];
  yield ["an empty schema", described([0x29, 0x0c, 0x16, 2, 0x19, 0x0c, 0])];
  yield ["a schema of 2^31 elements", described([0x29, 0xfc, ...varint(2 ** 31 - 1), 0])];
  yield ["lists of 2^31 lists", described([0x29, 0xf9, ...varint(2 ** 31 - 1), 0xf9, 0xff])];
  yield ["structs in structs", described([...repeated(20_000, 0x1c), ...repeated(20_001, 0)])];
  yield ["a number of 20,000 bytes", described([0x36, ...repeated(20_000, 0x80), 0])];
  yield ["a text of 2^31 bytes", described([0x68, ...varint(2 ** 31 - 1), 0])];
  yield ["a map", described([0x1b, 0x11, 0x11, 0x11, 0])];
  // Pages of 20 texts: first their levels, in runs with a length before them, then the texts.
  const levels = (...run: readonly number[]): readonly number[] => [run.length, 0, 0, 0, ...run];
  const all = levels(...varint(2 * rows), 1);
  const plain = 0;
  const places = 8;
  yield ["a run of 2^31 levels", paged(rows, plain, levels(...varint(2 ** 32 - 2), 1))];
  yield ["2^31 packed levels", paged(rows, plain, levels(...varint(2 ** 32 - 1), 1))];
  yield ["a run without an end", paged(rows, plain, levels(...repeated(40, 0xff)))];
  yield ["levels longer than their page", paged(rows, plain, [255, 255, 255, 255, 40, 1])];
  yield ["2^31 values in a page", paged(2 ** 31 - 1, plain, levels(...varint(2 ** 32 - 2), 1))];
  yield ["-1 values in a page", paged(-1, plain, all)];
  yield ["a text longer than its page", paged(rows, plain, [...all, 255, 255, 255, 127])];
  yield ["places in no dictionary", paged(rows, places, [...all, 1, ...varint(2 * rows), 0])];
  for (const [name, encoding] of Object.entries({ DELTA: 5, "a delta of lengths": 6, none: 77 }))
    yield [`the encoding ${name}`, paged(rows, encoding, all)];
  yield ["a page beyond its column", paged(rows, plain, all, 2 ** 30)];
  yield ["a page that becomes 2^31 bytes", paged(rows, plain, all, undefined, 2 ** 31 - 1)];
}

/** Files that are refused. */
export const parquetCorpus: ReadonlyMap<string, Uint8Array> = new Map(cases());

/** A file that is read, whose pages may be changed. */
export const readable: Uint8Array<ArrayBuffer> = whole;
