import { TorchFileError } from "./error.js";

/** The bytes at the start of a file that {@link fileKindOf} looks at. */
export const kindPrefixBytes = 512;

const kinds = {
  empty: "is empty: download or copy it again",
  "git-lfs":
    "is a Git LFS pointer, not the weights: run `git lfs pull` in its repository, or download the file itself",
  html: "is a web page, not the weights: the download was answered by a page; open the address in a browser, log in if it asks, and download the file itself",
  gzip: "is compressed by gzip: unpack it first (gunzip, or tar xzf)",
  compressed: "is a compressed archive: unpack it first",
  tar: "is a tar archive: unpack it first; a checkpoint of torch before 0.1.10 is loaded and saved again by a newer torch",
  onnx: "is an ONNX model: its weights are nodes of a graph; look for the checkpoint that it was exported from",
  hdf5: "is an HDF5 file, such as Keras and TensorFlow write: convert it with their tools first",
  gguf: "is a GGUF file of llama.cpp: look for the model's safetensors or .bin files",
  numpy: "is a numpy array: save a dict of tensors with torch.save() instead",
  json: "is JSON text: name the file of the weights, or an index that ends in .index.json",
  unknown:
    "is no torch checkpoint, neither a zip archive nor a pickle: name the file that torch.save() wrote",
} as const;

/** The kind of a file that may hold weights, by its first bytes. */
export type FileKind = "safetensors" | "zip" | "pickle" | keyof typeof kinds;

/**
 * Tells by its first bytes of which kind a file is.
 * @param prefix the first {@link kindPrefixBytes} bytes, or all of a shorter file
 * @param size of the whole file
 */
export function fileKindOf(prefix: Uint8Array, size: number): FileKind {
  const startsWith = (text: string, at = 0): boolean =>
    [...text].every((character, i) => prefix[at + i] === character.charCodeAt(0));
  const text = String.fromCharCode(...prefix.subarray(0, kindPrefixBytes));
  if (size === 0) return "empty";
  if (startsWith("version https://git-lfs")) return "git-lfs";
  if (/^(\xef\xbb\xbf)?\s*<(!doctype|html|\?xml|head|body)/i.test(text)) return "html";
  if (startsWith("PK\x03\x04") || startsWith("PK\x05\x06")) return "zip";
  if (startsWith("\x1f\x8b")) return "gzip";
  if (
    ["BZh", "\xfd7zXZ", "\x28\xb5\x2f\xfd", "7z\xbc\xaf", "Rar!"].some((magic) => startsWith(magic))
  )
    return "compressed";
  if (startsWith("ustar", 257)) return "tar";
  if (startsWith("\x89HDF\r\n")) return "hdf5";
  if (startsWith("GGUF")) return "gguf";
  if (startsWith("\x93NUMPY")) return "numpy";
  if (isSafetensors(prefix, size)) return "safetensors";
  if (prefix[0] === 0x80 && (prefix[1] as number) <= 5) return "pickle";
  // ir_version, then the length of the producer's name or the next field: fields of a ModelProto.
  if (
    prefix[0] === 0x08 &&
    (prefix[1] as number) < 0x20 &&
    [0x12, 0x1a, 0x3a].includes(prefix[2] ?? 0)
  )
    return "onnx";
  if (/^\s*[{[]/.test(text)) return "json";
  return "unknown";
}

/** The length of a JSON header, and the header's brace. */
function isSafetensors(prefix: Uint8Array, size: number): boolean {
  if (prefix.length < 9 || prefix[8] !== 0x7b) return false;
  const view = new DataView(prefix.buffer, prefix.byteOffset, 8);
  return view.getBigUint64(0, true) <= BigInt(size - 8);
}

/** The error for a file that is no torch checkpoint, with what it is and what to do. */
export const wrongKind = (kind: FileKind, source: string | undefined): TorchFileError =>
  new TorchFileError("kind", `${source === undefined ? "the file " : ""}${factOf(kind)}`, {
    source,
  });

const factOf = (kind: FileKind): string => {
  if (kind === "safetensors") return "is a safetensors file: open it with @halfstep/safetensors";
  return kind in kinds ? kinds[kind as keyof typeof kinds] : kinds.unknown;
};
