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
