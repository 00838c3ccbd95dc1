const view: DataView = /* @__PURE__ */ new DataView(/* @__PURE__ */ new ArrayBuffer(8));

/** ⌊log₂ magnitude⌋ of a positive normal float64, from its bits; −1023 for 0 and float64 subnormals. */
export function exponentOf(magnitude: number): number {
  view.setFloat64(0, magnitude);
  return (view.getUint16(0) >> 4) - 1023;
}

/** 2^exponent for exponents from −1074 to 1023. Exact by construction, and several times faster than `**`. */
export function powerOfTwo(exponent: number): number {
  if (exponent < -1022) return powerOfTwo(exponent + 52) * 2 ** -52;
  view.setUint32(0, (exponent + 1023) << 20);
  view.setUint32(4, 0);
  return view.getFloat64(0);
}
