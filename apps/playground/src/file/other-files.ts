import { fileKindOf, kindPrefixBytes, wrongKind } from "@halfstep/torch-files/file-kind";

/**
 * Refuses files of other kinds. What is unknown may be a damaged file, of which the reader says more.
 * @throws TypeError or TorchFileError that says what the file is and what to do
 */
export async function requireSafetensors(file: Blob, source: string): Promise<void> {
  const prefix = new Uint8Array(await file.slice(0, kindPrefixBytes).arrayBuffer());
  const kind = fileKindOf(prefix, file.size);
  switch (kind) {
    case "safetensors":
      return;
    case "unknown":
      if (/\.safetensors$/i.test(source) || !isNamed(source)) return;
      throw new TypeError(
        `${source} is not a safetensors file: choose one whose name ends in .safetensors`,
      );
    case "zip":
      throw new TypeError(`${source} is ${zipText(prefix, source)}`);
    case "pickle":
      throw new TypeError(`${source} is ${checkpointText(source)}`);
    case "numpy":
      throw new TypeError(
        `${source} is a numpy array: ${fromNumpy} writes arrays as safetensors in Python`,
      );
    case "json":
      throw new TypeError(
        `${source} is JSON text: if it lists the files of a model, choose one of those files`,
      );
    default:
      throw wrongKind(kind, source);
  }
}

const fromNumpy = "safetensors.numpy.save_file()";

/** Whether a name ends as names of files do. */
const isNamed = (source: string): boolean => /\.\w{1,12}$/.test(source);

const checkpointText = (source: string): string =>
  `a torch checkpoint: npx halfstep-convert ${shellWord(source)} writes its tensors as safetensors`;

/** What a zip archive is, by its name and by that of the first file in it. */
function zipText(prefix: Uint8Array, source: string): string {
  const first = firstNameOf(prefix);
  if (first.endsWith(".npy") || /\.npz$/i.test(source))
    return `an archive of numpy arrays: ${fromNumpy} writes them as safetensors in Python`;
  const isCheckpoint =
    /\.(pt|pth|bin|ckpt)$/i.test(source) ||
    /^[^/]+\/(data\.pkl$|data\/|version$|byteorder$|\.)/.test(first);
  return isCheckpoint
    ? checkpointText(source)
    : "a zip archive: unpack it, and choose a safetensors file from it";
}

/** The name that the first local header of an archive has; empty where it is cut off. */
function firstNameOf(prefix: Uint8Array): string {
  if (prefix.length < 30) return "";
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.byteLength);
  return new TextDecoder().decode(prefix.subarray(30, 30 + view.getUint16(26, true)));
}

/** A file's name as a shell takes it for one word. */
const shellWord = (name: string): string =>
  /^[\w./-]+$/.test(name) && !name.startsWith("-") ? name : `'${name.replaceAll("'", "'\\''")}'`;
