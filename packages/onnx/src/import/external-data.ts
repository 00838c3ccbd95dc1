import { OnnxError } from "../errors.js";
import type { TensorProto } from "../schema/onnx_pb.js";

/** A file of bytes that are read by ranges. */
export interface ByteSource {
  /** In bytes. */
  readonly size: number;
  /** Fills `into` with the bytes that begin at an offset. */
  read(offset: number, into: Uint8Array): void;
}

/** Gives the files beside a model, by their paths from its folder: `weights/layer1.bin`, never one outside of it. */
export type ExternalFiles = (location: string) => ByteSource;

/** Where a tensor's numbers lie in another file. */
export interface ExternalRange {
  readonly file: ByteSource;
  readonly offset: number;
}

/** Whether a path stays in the folder of a model, on any system. */
export const isInside = (location: string): boolean =>
  location.split("/").every((part) => !["", ".", ".."].includes(part)) &&
  !/[\\:\p{Cc}]/u.test(location);

/** Whether a tensor's numbers lie in another file. */
export const isExternal = ({ dataLocation, externalData }: TensorProto): boolean =>
  dataLocation === 1 || externalData.length > 0;

/**
 * Finds the numbers of a tensor in another file. The range is compared with the length of the file.
 *
 * @param what the tensor's name in errors
 * @param byteLength of its numbers
 * @throws OnnxError
 */
export function externalRange(
  { externalData }: TensorProto,
  what: string,
  byteLength: number,
  files: ExternalFiles | undefined,
): ExternalRange {
  const fields = new Map(externalData.map(({ key, value }) => [key, value]));
  const location = fields.get("location") ?? "";
  const shown = JSON.stringify(location.slice(0, 80));
  if (!isInside(location))
    throw new OnnxError(
      "malformed",
      `${what} lies in ${shown}, which is no file in the model's folder: save the model again, with its data beside it`,
    );
  const offset = fields.has("offset") ? wholeNumber(fields.get("offset")) : 0;
  const length = fields.has("length") ? wholeNumber(fields.get("length")) : byteLength;
  if (offset === undefined || length !== byteLength)
    throw new OnnxError(
      "malformed",
      `${what} needs ${byteLength} bytes, and lies in ${fields.get("length")?.slice(0, 20) ?? "all"} of ${shown} from ${fields.get("offset")?.slice(0, 20) ?? 0}: save the model again`,
    );
  if (!files)
    throw new OnnxError(
      "unsupported",
      `${what} lies in ${shown}: open the model's folder by openOnnx() of @halfstep/onnx/node, or pass its files as the option external`,
    );
  const file = opened(files, location, what);
  if (offset + byteLength > file.size)
    throw new OnnxError(
      "malformed",
      `${what} needs ${byteLength} bytes of ${shown} from ${offset}, and this has ${file.size}: copy the whole file`,
    );
  return { file, offset };
}

function opened(files: ExternalFiles, location: string, what: string): ByteSource {
  try {
    return files(location);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new OnnxError(
      "malformed",
      `${what} lies in another file, which cannot be read (${reason}): copy ${JSON.stringify(location)} into the model's folder`,
    );
  }
}

/** A number of bytes in decimal digits; undefined for other texts. */
function wholeNumber(text = ""): number | undefined {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : undefined;
}
