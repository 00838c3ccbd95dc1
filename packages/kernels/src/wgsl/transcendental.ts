/**
 * WGSL that keeps NaN and the infinities where the built-ins may lose them: adapters may assume that numbers are finite, and
 * SwiftShader's exp(NaN) is 0. So these functions test bits.
 */
const isNan = "(bitcast<vec4u>(x) & vec4u(0x7fffffffu)) > vec4u(0x7f800000u)";

/** `fn name(x: vec4f) -> vec4f`: `value`, an expression of x, and NaN for NaN. */
export const keepingNan = (name: string, value: string): string =>
  `fn ${name}(x: vec4f) -> vec4f { return select(${value}, x, ${isNan}); }\n`;

/** `fn name(x: vec4f) -> vec4f`: NaN for every x; WGSL has no constant for it. */
export const noNumber = (name: string): string =>
  `fn ${name}(x: vec4f) -> vec4f { return bitcast<vec4f>(min(bitcast<vec4u>(x), vec4u(1u)) | vec4u(0x7fc00000u)); }\n`;

/** `fn name(x: vec4f) -> vec4f`: exp, with NaN for NaN. */
export const expOf = (name: string): string => keepingNan(name, "exp(x)");

/** `fn name(x: vec4f) -> vec4f`: log, with -infinity for zeros, NaN for negative numbers and NaN, infinity for infinity. */
export const logOf = (name: string): string => /* wgsl */ `
fn ${name}(x: vec4f) -> vec4f {
  let bits = bitcast<vec4u>(x);
  // WGSL has no constants for these two.
  let no_number = bitcast<vec4f>(min(bits, vec4u(1u)) | vec4u(0x7fc00000u));
  let minus_infinity = bitcast<vec4f>((min(bits, vec4u(1u)) & vec4u(0u)) | vec4u(0xff800000u));
  let positive = select(log(x), x, bits >= vec4u(0x7f800000u));
  let signed = select(positive, no_number, bits > vec4u(0x80000000u));
  return select(signed, minus_infinity, (bits & vec4u(0x7fffffffu)) == vec4u(0u));
}
`;
