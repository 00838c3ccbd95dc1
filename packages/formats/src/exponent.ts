const view: DataView = /* @__PURE__ */ new DataView(/* @__PURE__ */ new ArrayBuffer(8));

/** ⌊log₂ magnitude⌋ of a positive normal float64, from its bits; −1023 for 0 and float64 subnormals. */
export function exponentOf(magnitude: number): number {
  view.setFloat64(0, magnitude);
  return (view.getUint16(0) >> 4) - 1023;
}
