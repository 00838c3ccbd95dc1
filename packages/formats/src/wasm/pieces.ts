import type { Encoder } from "../arrays/encoder.js";
import type { CodeArray, FloatFormat } from "../format.js";
import type { Kernels } from "./kernels.js";
import { writeDecodeParameters, writeEncodeParameters } from "./parameters.js";

/** Encodes the piece of numbers. Returns the region that holds the codes, or undefined if there is no kernel for this encoder or these numbers. */
export function encodePiece(
  kernels: Kernels,
  count: number,
  encoder: Encoder,
): CodeArray | undefined {
  const { bits, nanPayload, nanEncoding, exponentBits } = encoder.format;
  if (encoder.rounding !== "nearestEven" || bits > 16) return undefined;
  if (nanPayload === "truncated") {
    if (bits !== 16 || exponentBits !== 8 || encoder.saturate) return undefined;
    kernels.encodeBfloat16(count);
    return kernels.codes16;
  }
  writeEncodeParameters(kernels, encoder);
  if (bits > 8) {
    kernels.encode16(count);
    return kernels.codes16;
  }
  const sawNaN = encoder.dropsZeroSign
    ? kernels.encode8UnsignedZero(count)
    : kernels.encode8(count);
  return sawNaN && nanEncoding === "none" ? undefined : kernels.codes8;
}

/** Decodes codes, at most a piece of them, into the piece of numbers. Returns false if there is no kernel for this format. */
export function decodePiece(kernels: Kernels, codes: CodeArray, format: FloatFormat): boolean {
  const kernel = decodeKernel(kernels, format);
  if (!kernel) return false;
  const region = format.bits > 8 ? kernels.codes16 : kernels.codes8;
  region.set(codes);
  writeDecodeParameters(kernels, format);
  kernel(codes.length);
  return true;
}

/** Rounds the piece of numbers. Returns false, and leaves them, if there is no kernel for this encoder or these numbers. */
export function roundedPiece(kernels: Kernels, count: number, encoder: Encoder): boolean {
  const { format } = encoder;
  const kernel = decodeKernel(kernels, format);
  if (!kernel || !encodePiece(kernels, count, encoder)) return false;
  writeDecodeParameters(kernels, format);
  kernel(count);
  return true;
}

function decodeKernel(
  kernels: Kernels,
  format: FloatFormat,
): ((count: number) => void) | undefined {
  const { bits, exponentBits, nanEncoding } = format;
  if (bits === 16) return exponentBits === 8 ? kernels.decodeBfloat16 : kernels.decode16;
  const hasKernel =
    bits === 8 && (nanEncoding === "ieee" || (nanEncoding === "allOnes" && format.isSigned));
  return hasKernel ? kernels.decode8 : undefined;
}
