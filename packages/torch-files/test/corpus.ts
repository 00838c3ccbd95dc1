import type { TorchFileProblem } from "../src/index.js";
import { op } from "../src/pickle/opcodes.js";
import {
  archive,
  bytesOf,
  call,
  dict,
  fourFloats,
  global,
  int,
  legacy,
  type Part,
  pickle,
  storage,
  str,
  type TensorParts,
  tensor,
  tuple,
} from "./build.js";

/** A file that is refused, with the problem; undefined for one that is read. */
export interface Case {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly problem: TorchFileProblem | undefined;
}

const cases: Case[] = [];
/** The same pickle in an archive and in a legacy file. */
const both = (
  problem: TorchFileProblem | undefined,
  name: string,
  ...parts: readonly Part[]
): void => {
  cases.push({ name: `${name} (zip)`, bytes: archive(pickle(...parts)), problem });
  const data = pickle(...parts);
  const refers = new TextDecoder("latin1").decode(data).includes("Storage");
  const old = refers ? legacy(data) : legacy(data, { keys: [], stored: new Uint8Array(0) });
  cases.push({ name: `${name} (legacy)`, bytes: old, problem });
};
const state = (parts: TensorParts): Part => dict({ weight: tensor(parts) });
const bad = (problem: TorchFileProblem, name: string, bytes: Uint8Array<ArrayBuffer>): void => {
  cases.push({ name, bytes, problem });
};
const text = (characters: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(characters, (character) => character.charCodeAt(0));

// What is read
both(undefined, "a tensor", dict({ weight: tensor() }));
both(undefined, "an offset and strides", state({ offset: int(1), shape: [2], strides: [2] }));
both(undefined, "strides of lengths 1", state({ shape: [1, 4], strides: [77, 1] }));
both(
  undefined,
  "an empty tensor beyond its storage",
  state({ offset: int(4), shape: [0, 3], strides: [3, 1] }),
);
both(undefined, "a scalar", state({ shape: [], strides: [] }));
both(
  undefined,
  "classes that nobody knows",
  dict({ weight: tensor(), config: call("my.Config", int(3)) }),
);
both(undefined, "the oldest form", state({ by: "_rebuild_tensor", rest: [] }));
const withBits = (bits: Part): Part =>
  state({ rest: [op.NEWFALSE, call("collections.OrderedDict"), bits] });
both(undefined, "bits that are set", withBits(dict({ neg: op.NEWTRUE, conj: op.NEWFALSE })));
both(undefined, "no bits", withBits(op.NONE));
both("unsupported", "a bit that nobody knows", withBits(dict({ zero: op.NEWTRUE })));
both("unsupported", "a conjugate of a real number", withBits(dict({ conj: op.NEWTRUE })));
both("shape", "bits that are no dict", withBits(int(1)));
const ofDtype = (dtype: string): Part =>
  state({
    by: "_rebuild_tensor_v3",
    storage: storage({ type: "torch.storage.UntypedStorage", count: 16 }),
    shape: [8],
    rest: [op.NEWFALSE, op.NONE, global(`torch.${dtype}`)],
  });
for (const dtype of ["float8_e4m3fn", "float8_e5m2", "uint16"])
  cases.push({ name: dtype, bytes: archive(pickle(ofDtype(dtype))), problem: undefined });
cases.push({
  name: "tensors that share a storage by two names",
  bytes: archive(pickle(dict({ a: tensor(), b: tensor({ offset: int(2), shape: [2] }) }))),
  problem: undefined,
});

// Opcodes that are not on the list, and those that are where they do not belong
const listed = new Set<number>(Object.values(op));
for (let code = 0; code < 256; code++)
  if (!listed.has(code)) both("pickle", `opcode ${code}`, dict({ weight: tensor() }), code);
for (const [name, code] of Object.entries(op)) {
  if (/^(MARK|EMPTY|NONE|NEW(TRUE|FALSE)|STOP|PROTO|FRAME)/.test(name)) continue;
  // Sixteen zeros are arguments of any opcode, or opcodes that are unknown.
  if (!/INT|LONG|FLOAT|STRING|UNICODE|BYTES|BYTEARRAY|GLOBAL$/.test(name))
    both("pickle", `${name} on an empty stack`, code, 0, 0, 0, 0);
}
both("pickle", "a stack that is empty at the end");
both("pickle", "protocol 6", op.PROTO, 6, op.NONE);
both("pickle", "an entry of the memo that is not there", op.BINGET, 9);
both("pickle", "a text that is not UTF-8", op.BINUNICODE, 1, 0, 0, 0, 0xff);
both("pickle", "a key without a value", op.EMPTY_DICT, op.MARK, int(1), op.SETITEMS);
both("pickle", "a state of a number", int(1), op.NONE, op.BUILD);
both("pickle", "appending to a number", int(1), op.NONE, op.APPEND);
both("pickle", "adding to a dict", op.EMPTY_DICT, op.MARK, int(1), op.ADDITEMS);
both("pickle", "a class named by numbers", int(1), int(2), op.STACK_GLOBAL);
both("truncated", "a text longer than the file", op.BINUNICODE, 0xff, 0xff, 0xff, 0x7f);
both(
  "truncated",
  "bytes longer than memory",
  op.BINBYTES8,
  0xff,
  0xff,
  0xff,
  0xff,
  0xff,
  0xff,
  0x0f,
  0,
);
both("pickle", "bytes of 2^64 - 1", op.BINBYTES8, [255, 255, 255, 255, 255, 255, 255, 255]);
both("truncated", "a name without an end", op.GLOBAL, "torch");

// Calls that Python would make
for (const path of [
  "os.system",
  "posix.system",
  "nt.system",
  "subprocess.Popen",
  "builtins.eval",
  "builtins.exec",
  "__builtin__.eval",
  "builtins.__import__",
  "importlib.import_module",
  "runpy._run_code",
  "pty.spawn",
  "socket.socket",
  "shutil.rmtree",
  "torch.hub.load",
  "torch.serialization.load",
  "pickle.loads",
  "webbrowser.open",
  "urllib.request.urlopen",
]) {
  both("hostile", `${path} alone`, call(path, str("echo")));
  both("hostile", `${path} beside tensors`, dict({ weight: tensor(), x: call(path, str("echo")) }));
}
both("hostile", "os.system by STACK_GLOBAL", str("os"), str("system"), op.STACK_GLOBAL);
both("hostile", "a method of eval", str("builtins"), str("eval.__call__"), op.STACK_GLOBAL);

// Tensors that lie
both("shape", "more elements than the storage has", state({ shape: [5] }));
both("shape", "strides beyond the storage", state({ shape: [2], strides: [4] }));
both("shape", "an offset beyond the storage", state({ offset: int(1) }));
both("shape", "an offset of 2^60", state({ offset: int(2 ** 60) }));
both("shape", "a negative offset", state({ offset: [op.BININT, 255, 255, 255, 255] }));
both("shape", "no offset", state({ offset: op.NONE }));
both("shape", "fewer strides than dimensions", state({ shape: [2, 2], strides: [1] }));
both(
  "shape",
  "65 dimensions",
  state({ shape: new Array(65).fill(1), strides: new Array(65).fill(1) }),
);
both("shape", "2^60 elements", state({ shape: [2 ** 30, 2 ** 30], strides: [0, 0] }));
both(
  "too-large",
  "a terabyte by strides of 0",
  state({ shape: [2 ** 20, 2 ** 18], strides: [0, 0] }),
);
both(
  "too-large",
  "tensors that take a hundred times the file",
  dict(
    Object.fromEntries(
      Array.from({ length: 300 }, (_, i) => [`${i}`, tensor({ shape: [10_000], strides: [0] })]),
    ),
  ),
);
both("pickle", "a storage that is a number", state({ storage: int(3) }));
both("pickle", "a reference that is a number", state({ storage: [int(3), op.BINPERSID] }));
both(
  "pickle",
  "a reference to a module",
  state({ storage: [tuple(str("module"), op.NONE, str("0"), op.NONE, int(4)), op.BINPERSID] }),
);
both("pickle", "-1 elements", state({ storage: storage({ count: 2 ** 64 - 2 ** 11 }) }));
both(
  "dtype",
  "a storage of a type that is not known",
  state({ storage: storage({ type: "torch.QInt8Storage" }) }),
);
both(
  "dtype",
  "a storage called constructor",
  state({ storage: storage({ type: "torch.constructor" }) }),
);
bad("dtype", "a dtype that is not known", archive(pickle(ofDtype("int4"))));
both(
  "unsupported",
  "a sparse tensor",
  dict({ weight: call("torch._utils._rebuild_sparse_tensor", op.NONE) }),
);
both(
  "unsupported",
  "a quantized tensor",
  dict({ weight: call("torch._utils._rebuild_qtensor", op.NONE) }),
);
both(
  "unsupported",
  "a storage within the pickle",
  dict({
    weight: call(
      "torch._utils._rebuild_tensor_v2",
      call("torch.storage._load_from_bytes", str("x")),
      int(0),
      tuple(),
      tuple(),
    ),
  }),
);

// State dicts
both("state-dict", "None", op.NONE);
both("state-dict", "a number", int(7));
both("state-dict", "an empty dict", op.EMPTY_DICT);
both("state-dict", "no tensors", dict({ epoch: int(3), lr: op.NONE }));
both("state-dict", "only an optimizer", dict({ optimizer: dict({ momentum: tensor() }) }));
both("state-dict", "two models", dict({ a: dict({ w: tensor() }), b: dict({ w: tensor() }) }));
both("state-dict", "a tensor alone", tensor());
both("state-dict", "an object", call("my.Model"));

// Archives
const whole = archive(pickle(dict({ weight: tensor() })));
for (let length = 1; length < whole.length; length += Math.ceil(whole.length / 60))
  bad(length < 4 ? "kind" : "archive", `${length} bytes of an archive`, whole.slice(0, length));
bad(
  "archive",
  "a compressed archive",
  archive(pickle(dict({ weight: tensor() })), { "data/0": fourFloats }, 6),
);
bad(
  "archive",
  "a zip bomb",
  archive(new Uint8Array(100_000), { "data/0": new Uint8Array(10_000_000) }, 6),
);
bad("storage", "an archive without its storage", archive(pickle(dict({ weight: tensor() })), {}));
bad(
  "storage",
  "a storage that is too short",
  archive(pickle(dict({ weight: tensor() })), { "data/0": fourFloats.slice(4) }),
);
bad(
  "storage",
  "a storage that is too long",
  archive(pickle(dict({ weight: tensor() })), { "data/0": new Uint8Array(20) }),
);
bad(
  "kind",
  "an archive of something else",
  new Uint8Array(
    archive(new Uint8Array(3)).map((byte, i, all) =>
      all[i - 1] === 0x61 && all[i - 2] === 0x74 && byte === 0x2e ? 0x2d : byte,
    ),
  ),
);
bad("kind", "TorchScript", archive(pickle(op.NONE), { "constants.pkl": pickle(op.NONE) }));
bad(
  "unsupported",
  "an archive of a big-endian machine",
  archive(pickle(op.NONE), { byteorder: text("big") }),
);
bad("truncated", "an archive with an empty pickle", archive(new Uint8Array(0)));

// Legacy files
const old = legacy(pickle(dict({ weight: tensor() })));
for (let length = 2; length < old.length; length += Math.ceil(old.length / 60))
  bad("truncated", `${length} bytes of a legacy file`, old.slice(0, length));
bad("kind", "another pickle", pickle(dict({ weight: tensor() })));
bad("kind", "another version", bytesOf(old.slice(0, 15), pickle(int(1002)), old.slice(15)));
bad(
  "unsupported",
  "a legacy file of a big-endian machine",
  legacy(pickle(dict({ weight: tensor() })), { system: dict({ little_endian: op.NEWFALSE }) }),
);
bad(
  "storage",
  "a legacy file without its storage",
  legacy(pickle(dict({ weight: tensor() })), { keys: [] }),
);
bad(
  "storage",
  "a storage without a reference",
  legacy(pickle(dict({ weight: tensor() })), { keys: ["1"] }),
);
bad(
  "storage",
  "a storage of 2^62 elements",
  legacy(pickle(dict({ weight: tensor() })), {
    stored: bytesOf([0, 0, 0, 0, 0, 0, 0, 0x40], fourFloats),
  }),
);
bad(
  "truncated",
  "a storage of 2^40 elements, as the pickle says",
  legacy(pickle(state({ storage: storage({ count: 2 ** 40 }) })), {
    stored: bytesOf([0, 0, 0, 0, 0, 1, 0, 0], fourFloats),
  }),
);

// Other kinds of files
for (const [name, bytes] of Object.entries({
  "an empty file": "",
  "a Git LFS pointer":
    "version https://git-lfs.github.com/spec/v1\noid sha256:4665a5ea\nsize 1109999\n",
  "a web page": "<!DOCTYPE html><html><body>Not found</body></html>",
  "a web page after blanks": "\n  <html>",
  gzip: "\x1f\x8b\x08\0",
  xz: "\xfd7zXZ\0",
  zstd: "\x28\xb5\x2f\xfd",
  "an HDF5 file": "\x89HDF\r\n\x1a\n",
  "an ONNX model": "\x08\x07\x12\x07pytorch\x1a\x05",
  "a GGUF file": "GGUF\x03\0\0\0",
  "a numpy array": "\x93NUMPY\x01\0",
  JSON: '{"weight": [1, 2]}',
  text: "weights of my model",
  zeros: "\0\0\0\0\0\0\0\0\0\0\0\0",
  tar: `${"x".repeat(257)}ustar`,
  safetensors: "\x02\0\0\0\0\0\0\0{}",
}))
  bad("kind", name, text(bytes));

/** Files that are refused, each for one reason, and some that are read. */
export const corpus: readonly Case[] = cases;
