const float = new Float32Array(1);
const word = new Uint32Array(float.buffer);

/** The bits of the float32 next to `value`. */
export function bitsOf(value: number): number {
  float[0] = value;
  return word[0] as number;
}

/** The float32 that has these bits. */
export function floatOf(bits: number): number {
  word[0] = bits;
  return float[0] as number;
}

/** The bfloat16 below or above `value` toward larger magnitudes, which `random` decides; NaN and exact values stay. */
export function stochasticBfloat16(value: number, random: number): number {
  const bits = bitsOf(value);
  const rounded = (bits & 0x7fffffff) > 0x7f800000 ? bits : bits + (random & 0xffff);
  return floatOf((rounded & 0xffff0000) >>> 0);
}
