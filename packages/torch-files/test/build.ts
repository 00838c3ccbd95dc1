import { zipSync } from "fflate";
import { op } from "../src/pickle/opcodes.js";

/** Parts of a pickle: opcodes, and text that stands as it is. */
export type Part = number | string | Uint8Array | readonly Part[];

/** Bytes of parts. */
export function bytesOf(...parts: readonly Part[]): Uint8Array<ArrayBuffer> {
  const pieces: Uint8Array[] = [];
  const add = (part: Part): void => {
    if (part instanceof Uint8Array) pieces.push(part);
    else if (typeof part === "string") pieces.push(new TextEncoder().encode(part));
    else if (typeof part === "number") pieces.push(Uint8Array.of(part));
    else for (const each of part) add(each);
  };
  add(parts);
  return new Uint8Array(Buffer.concat(pieces));
}

/** A pickle of protocol 2. */
export const pickle = (...parts: readonly Part[]): Uint8Array<ArrayBuffer> =>
  bytesOf(op.PROTO, 2, ...parts, op.STOP);

const little = (value: number, length: number): readonly number[] =>
  Array.from({ length }, (_, i) => Math.floor(value / 256 ** i) % 256);

/** A whole number: in 32 bits, or as a long one. */
export const int = (value: number): Part =>
  value >= 0 && value < 2 ** 31
    ? [op.BININT, ...little(value, 4)]
    : [op.LONG1, 8, ...little(value, 8)];

/** A text. */
export function str(text: string): Part {
  const bytes = new TextEncoder().encode(text);
  return [op.BINUNICODE, ...little(bytes.length, 4), bytes];
}

/** A name of Python's: "torch.FloatStorage". */
export function global(path: string): Part {
  const dot = path.lastIndexOf(".");
  return [op.GLOBAL, `${path.slice(0, dot)}\n${path.slice(dot + 1)}\n`];
}

/** A tuple. */
export const tuple = (...items: readonly Part[]): Part => [op.MARK, ...items, op.TUPLE];

/** A dict. */
export const dict = (entries: Readonly<Record<string, Part>>): Part => [
  op.EMPTY_DICT,
  op.MARK,
  ...Object.entries(entries).flatMap(([key, value]) => [str(key), value]),
  op.SETITEMS,
];

/** A call that Python would make. */
export const call = (path: string, ...args: readonly Part[]): Part => [
  global(path),
  tuple(...args),
  op.REDUCE,
];

/** A reference to a storage. */
export const storage = ({
  type = "torch.FloatStorage",
  key = "0",
  count = 4,
}: {
  readonly type?: string;
  readonly key?: string;
  readonly count?: number;
} = {}): Part => [
  tuple(str("storage"), global(type), str(key), str("cpu"), int(count)),
  op.BINPERSID,
];

/** What a tensor is made of. */
export interface TensorParts {
  readonly storage?: Part;
  readonly offset?: Part;
  readonly shape?: readonly number[];
  readonly strides?: readonly number[];
  readonly rest?: readonly Part[];
  readonly by?: string;
}

/** A tensor of four float32, unless something else is said. */
export const tensor = ({
  storage: stored = storage(),
  offset = int(0),
  shape = [4],
  strides = [1],
  rest = [op.NEWFALSE, call("collections.OrderedDict")],
  by = "_rebuild_tensor_v2",
}: TensorParts = {}): Part =>
  call(
    `torch._utils.${by}`,
    stored,
    offset,
    tuple(...shape.map(int)),
    tuple(...strides.map(int)),
    ...rest,
  );

/** The bytes of 1, 2, 3, 4 in float32. */
export const fourFloats: Uint8Array<ArrayBuffer> = new Uint8Array(
  Float32Array.of(1, 2, 3, 4).buffer,
);

/** An archive as torch.save() writes it. */
export const archive = (
  data: Uint8Array,
  records: Readonly<Record<string, Uint8Array>> = { "data/0": fourFloats },
  level: 0 | 6 = 0,
): Uint8Array<ArrayBuffer> =>
  new Uint8Array(
    zipSync(
      Object.fromEntries(
        Object.entries({ "data.pkl": data, ...records }).map(([name, bytes]) => [
          `archive/${name}`,
          bytes,
        ]),
      ),
      { level },
    ),
  );

const magic: Part = [op.LONG1, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];

/** A legacy file: five pickles, then the storages. */
export const legacy = (
  data: Uint8Array,
  {
    keys = ["0"],
    stored = bytesOf(little(4, 8), fourFloats),
    system = dict({ little_endian: op.NEWTRUE }),
  }: {
    readonly keys?: readonly string[];
    readonly stored?: Uint8Array;
    readonly system?: Part;
  } = {},
): Uint8Array<ArrayBuffer> =>
  bytesOf(
    pickle(magic),
    pickle(int(1001)),
    pickle(system),
    data,
    pickle(op.EMPTY_LIST, op.MARK, keys.map(str), op.APPENDS),
    stored,
  );
