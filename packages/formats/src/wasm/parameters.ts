import type { Encoder } from "../arrays/encoder.js";
import type { FloatFormat } from "../format.js";
import type { Kernels } from "./kernels.js";
import { decodeParameters, encodeParameters } from "./module.js";

/** Writes an encoder's constants where the encoding kernels read them. */
export function writeEncodeParameters({ parameters }: Kernels, encoder: Encoder): void {
  const { shift, signShift, signBit, smallestField, overflow, nan } = encoder;
  const magic = (smallestField + shift) << 23;
  const values: Record<(typeof encodeParameters)[number], number> = {
    LIFT: shift << 23,
    MAGIC: magic,
    BASE: magic >>> shift,
    CAP: overflow[0],
    NAN: nan === undefined ? 0 : nan - overflow[0],
    SIGN: signBit,
    shift,
    signShift,
  };
  encodeParameters.forEach((name, i) => {
    parameters[i] = values[name];
  });
}

/** Writes a format's constants where the decoding kernels read them: one whose NaNs are `"ieee"` or `"allOnes"`. */
export function writeDecodeParameters({ parameters }: Kernels, format: FloatFormat): void {
  const { bits, exponentBits, mantissaBits, bias, nanEncoding } = format;
  const shift = 23 - mantissaBits;
  const magnitude = 2 ** (bits - 1) - 1;
  const rebias = (127 - bias) << 23;
  const isIeee = nanEncoding === "ieee";
  const special = isIeee ? ((1 << exponentBits) - 1) << 23 : magnitude << shift;
  const values: Record<(typeof decodeParameters)[number], number> = {
    MAGNITUDE: magnitude,
    NORMAL: (128 - bias) << 23,
    REBIAS: rebias,
    SPECIAL: special,
    EXCESS: (isIeee ? 0x7f800000 : 0x7fc00000) - special - rebias,
    shift,
    signShift: 32 - bits,
  };
  decodeParameters.forEach((name, i) => {
    parameters[i] = values[name];
  });
}
