/**
 * Declares `fn philox4x32(counter: vec4u, key: vec2u) -> vec4u`, the Philox4x32-10 of `@halfstep/formats/philox`. WGSL has no
 * high half of a product, so it is put together from products of 16-bit halves.
 *
 * `encodeArray` rounds a quad of elements with the four words of counter (quad, 0, offsetLow, offsetHigh) and key
 * (seedLow, seedHigh).
 */
export const philox4x32: string = /* wgsl */ `
fn philox4x32(counter: vec4u, key: vec2u) -> vec4u {
  var c = counter;
  var k = key;
  for (var round = 0u; round < 10u; round++) {
    let low = c.xz & vec2u(0xffffu);
    let high = c.xz >> vec2u(16u);
    let middle = high * vec2u(0x1f53u, 0x8d57u) + ((low * vec2u(0x1f53u, 0x8d57u)) >> vec2u(16u));
    let cross = low * vec2u(0xd251u, 0xcd9eu) + (middle & vec2u(0xffffu));
    let upper = high * vec2u(0xd251u, 0xcd9eu) + (middle >> vec2u(16u)) + (cross >> vec2u(16u));
    let lower = c.xz * vec2u(0xd2511f53u, 0xcd9e8d57u);
    c = vec4u(upper.y ^ c.y ^ k.x, lower.y, upper.x ^ c.w ^ k.y, lower.x);
    k += vec2u(0x9e3779b9u, 0xbb67ae85u);
  }
  return c;
}
`;
