import { isDtype, type SafetensorsDtype } from "./dtype.js";
import { quote, SafetensorsError, type SafetensorsProblem } from "./error.js";
import { JsonScanner } from "./json-scanner.js";
import { byteLengthOf, maxRank, type SafetensorsInfo } from "./tensor.js";

/** The reference's limit of the header. */
export const maxHeaderBytes = 100_000_000;

/** Bytes of the header's length, before the header. */
export const prefixBytes = 8;

export const metadataKey = "__metadata__";

/** Options of reading safetensors. */
export interface ReadOptions {
  /** Refuse longer headers; at most 100,000,000, the limit of the format. */
  readonly maxHeaderBytes?: number;
  /** Stands for the file in error messages. */
  readonly source?: string;
}

/** The names of {@link ReadOptions}. */
export const readOptions: readonly (keyof ReadOptions)[] = ["maxHeaderBytes", "source"];

/** The content of a header. Both records have no prototype, because a tensor may be called "constructor". */
export interface Header {
  readonly metadata: Readonly<Record<string, string>>;
  /** In the order of the data. */
  readonly tensors: Readonly<Record<string, SafetensorsInfo>>;
}

/**
 * The length of the header, from the file's first bytes.
 * @throws SafetensorsError when there is no such header in a file of that length; TypeError for a limit that is no number
 */
export function headerLength(prefix: Uint8Array, fileLength: number, options: ReadOptions): number {
  const fail = (problem: SafetensorsProblem, fact: string): never => {
    throw new SafetensorsError(problem, fact, { source: options.source, offset: 0 });
  };
  const asked = options.maxHeaderBytes ?? maxHeaderBytes;
  if (typeof asked !== "number") throw new TypeError("maxHeaderBytes: pass a number");
  if (fileLength < prefixBytes)
    return fail("truncated", `${fileLength} bytes are too few for a header length, which takes 8`);
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefixBytes);
  const length = view.getBigUint64(0, true);
  const limit = Math.min(asked, maxHeaderBytes);
  if (length === 0n) return fail("header-length", "the header has no bytes");
  // Negated, so that a limit of NaN refuses everything.
  if (!(length <= limit))
    return fail("header-length", `the header has ${length} bytes, the limit is ${limit}`);
  const available = fileLength - prefixBytes;
  if (length > available)
    return fail("truncated", `the header has ${length} bytes, the file has ${available} for it`);
  return Number(length);
}

/**
 * Parses a header and checks that the tensors cover the rest of the file, without holes and overlaps.
 * @throws SafetensorsError for anything else
 */
export function parseHeader(bytes: Uint8Array, fileLength: number, source?: string): Header {
  const entries = new HeaderParser(bytes, source).parse();
  const dataStart = prefixBytes + bytes.length;
  const tensors = [...entries.tensors.values()];
  tensors.sort((a, b) => a.begin - b.begin || a.end - b.end);
  const result: Record<string, SafetensorsInfo> = Object.create(null);
  let covered = 0;
  let previous: string | undefined;
  for (const { name, dtype, shape, begin, end, at } of tensors) {
    const place = { source, tensor: name, offset: prefixBytes + at };
    if (begin < covered)
      throw new SafetensorsError(
        "overlap",
        `its data starts at ${begin}, inside that of ${quote(previous ?? "")}, which ends at ${covered}`,
        place,
      );
    if (begin > covered)
      throw new SafetensorsError(
        "hole",
        `its data starts at ${begin}, and ${covered} to ${begin} belong to no tensor`,
        place,
      );
    if (dataStart + end > fileLength)
      throw new SafetensorsError(
        "truncated",
        `its data ends at ${end}, and the file has ${fileLength - dataStart} bytes of data`,
        place,
      );
    result[name] = { dtype, shape, byteOffset: dataStart + begin, byteLength: end - begin };
    covered = end;
    previous = name;
  }
  const rest = fileLength - dataStart - covered;
  if (rest > 0)
    throw new SafetensorsError("trailing-data", `${rest} bytes after the last tensor`, {
      source,
      offset: dataStart + covered,
    });
  return { metadata: entries.metadata, tensors: result };
}

interface Entry {
  readonly name: string;
  readonly dtype: SafetensorsDtype;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
  /** Where its name stands in the header. */
  readonly at: number;
}

/** The grammar of a header. It is three levels deep, and no part of it is skipped: whatever nests deeper is an error. */
class HeaderParser {
  readonly #json: JsonScanner;
  readonly #source: string | undefined;
  #tensor: string | undefined;

  constructor(bytes: Uint8Array, source: string | undefined) {
    this.#source = source;
    this.#json = new JsonScanner(bytes, (problem, fact, at) => this.#fail(problem, fact, at));
    if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf)
      this.#fail("encoding", "the header starts with a byte order mark", 0);
    // The scanner would skip other whitespace: the format says that a header begins with a brace.
    if (bytes[0] !== 0x7b) this.#fail("syntax", 'the header does not begin with "{"', 0);
  }

  parse(): { metadata: Record<string, string>; tensors: Map<string, Entry> } {
    let metadata: Record<string, string> | undefined;
    const tensors = new Map<string, Entry>();
    this.#object("a tensor's name", "syntax", (name, at) => {
      if (name === metadataKey) {
        if (metadata) this.#fail("duplicate", `${metadataKey} stands twice in the header`, at);
        metadata = this.#metadata();
        return;
      }
      this.#tensor = name;
      if (tensors.has(name)) this.#fail("duplicate", "stands twice in the header", at);
      tensors.set(name, this.#entry(name, at));
      this.#tensor = undefined;
    });
    this.#json.end();
    return { metadata: metadata ?? Object.create(null), tensors };
  }

  #metadata(): Record<string, string> {
    const metadata: Record<string, string> = Object.create(null);
    this.#object("a metadata key", "metadata", (key, at) => {
      if (key in metadata)
        this.#fail("duplicate", `${quote(key)} stands twice in ${metadataKey}`, at);
      metadata[key] = this.#json.string(
        `a string as the value of ${quote(key)} in ${metadataKey}`,
        "metadata",
      );
    });
    return metadata;
  }

  #entry(name: string, at: number): Entry {
    let dtype: SafetensorsDtype | undefined;
    let shape: number[] | undefined;
    let offsets: number[] | undefined;
    const once = (field: string, found: unknown, position: number): void => {
      if (found !== undefined) this.#fail("duplicate", `${field} stands twice`, position);
    };
    this.#object("a field", "field", (field, position) => {
      if (field === "dtype") {
        once(field, dtype, position);
        dtype = this.#dtype();
      } else if (field === "shape") {
        once(field, shape, position);
        shape = this.#integers("shape", "a dimension", maxRank);
      } else if (field === "data_offsets") {
        once(field, offsets, position);
        offsets = this.#integers("offsets", "an offset", 2);
      } else
        this.#fail(
          "field",
          `has a field ${quote(field)}: only dtype, shape and data_offsets are known`,
          position,
        );
    });
    const missing = (field: string): never => this.#fail("field", `has no ${field}`, at);
    dtype ??= missing("dtype");
    shape ??= missing("shape");
    const [begin, end] = offsets ?? missing("data_offsets");
    if (begin === undefined || end === undefined)
      return this.#fail("offsets", "data_offsets needs two offsets", at);
    if (begin > end)
      this.#fail("offsets", `its data starts at ${begin}, after its end at ${end}`, at);
    const place = { source: this.#source, tensor: name, offset: prefixBytes + at };
    const byteLength = byteLengthOf(dtype, shape, place);
    if (end - begin !== byteLength)
      this.#fail(
        "size",
        `${dtype} [${shape}] takes ${byteLength} bytes, and data_offsets [${begin},${end}] span ${end - begin}`,
        at,
      );
    return { name, dtype, shape, begin, end, at };
  }

  #dtype(): SafetensorsDtype {
    const { at } = this.#json;
    const text = this.#json.string("a dtype", "dtype");
    return isDtype(text) ? text : this.#fail("dtype", `there is no dtype ${quote(text)}`, at);
  }

  #integers(problem: "shape" | "offsets", what: string, most: number): number[] {
    const json = this.#json;
    const values: number[] = [];
    json.expect("[", problem);
    if (json.take("]")) return values;
    do {
      if (values.length === most)
        this.#fail(problem, `${problem} may have ${most} numbers, not more`, json.at);
      values.push(json.integer(what, problem));
    } while (json.take(","));
    json.expect("]");
    return values;
  }

  #object(
    key: string,
    problem: SafetensorsProblem,
    member: (key: string, at: number) => void,
  ): void {
    const json = this.#json;
    json.expect("{", problem);
    if (json.take("}")) return;
    do {
      const { at } = json;
      const name = json.string(key);
      json.expect(":");
      member(name, at);
    } while (json.take(","));
    json.expect("}");
  }

  #fail(problem: SafetensorsProblem, fact: string, at: number): never {
    throw new SafetensorsError(problem, fact, {
      source: this.#source,
      tensor: this.#tensor,
      offset: prefixBytes + at,
    });
  }
}
