/**
 * The rule as WGSL, to update a scale on a GPU: the same bits as `nextScaleState` on every adapter. It exports strings and numbers only and
 * needs no GPU.
 */
import type { ScaleRule } from "./rule.js";
import { exponentRanges } from "./underflow.js";

/**
 * Members of the WGSL struct `ScaleRule`, in order: four bytes each. Scales are bits of float32, and factors the high and low
 * words of float64.
 */
export const scaleRuleFields: readonly {
  readonly name: string;
  readonly type: "f32" | "i32" | "u32";
}[] = (
  [
    ["isDynamic", "u32"],
    ["growthFactorHigh", "u32"],
    ["growthFactorLow", "u32"],
    ["backoffFactorHigh", "u32"],
    ["backoffFactorLow", "u32"],
    ["growthInterval", "f32"],
    ["growthDelay", "i32"],
    ["isExact", "u32"],
    ["hysteresis", "f32"],
    ["refillsWhenClean", "u32"],
    ["tolerance", "u32"],
    ["minScale", "u32"],
    ["keepsAtFloor", "u32"],
    ["maxScale", "u32"],
    ["targetUnderflow", "u32"],
    ["isBfloat16", "u32"],
  ] as const
).map(([name, type]) => ({ name, type }));

/** The numbers of the members, by name. */
export const scaleRuleValues = (rule: ScaleRule): Readonly<Record<string, number>> => ({
  isDynamic: Number(rule.dynamic),
  growthFactorHigh: highWord(rule.growthFactor),
  growthFactorLow: lowWord(rule.growthFactor),
  backoffFactorHigh: highWord(rule.backoffFactor),
  backoffFactorLow: lowWord(rule.backoffFactor),
  growthInterval: rule.growthInterval,
  growthDelay: rule.growthDelay,
  isExact: Number(rule.exactInterval),
  hysteresis: rule.hysteresis,
  refillsWhenClean: Number(rule.hysteresisRefill === "clean"),
  tolerance: bitsOf(rule.tolerance),
  minScale: bitsOf(rule.minScale),
  keepsAtFloor: Number(rule.atFloor === "keep"),
  maxScale: bitsOf(rule.maxScale),
  targetUnderflow: Math.round(rule.targetUnderflow * 2 ** 16),
  isBfloat16: Number(rule.underflowFormat === "bfloat16"),
});

/** The struct in a uniform buffer: 16 words. */
export function scaleRuleWords(rule: ScaleRule): Uint32Array<ArrayBuffer> {
  const values = scaleRuleValues(rule);
  const words = scaleRuleFields.map(({ name, type }) => {
    const value = values[name] as number;
    return type === "f32" ? bitsOf(value) : value;
  });
  return Uint32Array.from(words);
}

/** The inverse of {@link scaleRuleValues}, for the members that decide the next state: for references on the CPU. */
export const scaleRuleOfValues = (values: Readonly<Record<string, number>>): ScaleRule => ({
  initScale: 1,
  dynamic: values.isDynamic === 1,
  growthFactor: doubleOf(values.growthFactorHigh, values.growthFactorLow),
  backoffFactor: doubleOf(values.backoffFactorHigh, values.backoffFactorLow),
  growthInterval: values.growthInterval as number,
  growthDelay: values.growthDelay as number,
  exactInterval: values.isExact === 1,
  hysteresis: values.hysteresis as number,
  hysteresisRefill: values.refillsWhenClean === 1 ? "clean" : "growth",
  tolerance: floatOf(values.tolerance),
  minScale: floatOf(values.minScale),
  atFloor: values.keepsAtFloor === 1 ? "keep" : "clamp",
  raiseAtFloor: true,
  maxScale: floatOf(values.maxScale),
  targetUnderflow: (values.targetUnderflow as number) / 2 ** 16,
  underflowFormat: values.isBfloat16 === 1 ? "bfloat16" : "float16",
});

// Products and quotients are computed on bits, rounded to nearest even: scales may be subnormal, which GPUs may flush, WGSL's division is
// not exact, and WGSL has no float64. The function `product` multiplies the bits of a float32 by the words of a float64 as torch does. The
// 77 bits of the product, in digits of 12, are rounded to the 53 of a float64, and those to a float32.
const arithmeticWgsl = `
struct Parts { mantissa: u32, exponent: i32 }
fn parts(bits: u32) -> Parts {
  let field = bits >> 23u;
  let fraction = bits & 0x7fffffu;
  if (field > 0u) { return Parts(fraction | 0x800000u, i32(field) - 150); }
  let shift = countLeadingZeros(fraction) - 8u;
  return Parts(fraction << shift, -149 - i32(shift));
}
fn nearest(q: u32, isInexact: bool, exponent: i32) -> u32 {
  let top = 31 - i32(countLeadingZeros(q)) + exponent;
  if (top > 127) { return 0x7f800000u; }
  let shift = u32(max(top - 23, -149) - exponent);
  if (shift > 32u) { return 0u; }
  let kept = select(q >> (shift & 31u), 0u, shift == 32u);
  let rest = select(q & ((1u << (shift & 31u)) - 1u), q, shift == 32u);
  let half = 1u << (shift - 1u);
  let up = rest > half || (rest == half && (isInexact || (kept & 1u) == 1u));
  return (u32(max(top + 126, 0)) << 23u) + kept + u32(up);
}
fn product(a: u32, factor: vec2u) -> u32 {
  if (a == 0u) { return 0u; }
  let x = parts(a);
  let x0 = x.mantissa & 0xfffu;
  let x1 = x.mantissa >> 12u;
  let y0 = factor.y & 0xfffu;
  let y1 = (factor.y >> 12u) & 0xfffu;
  let y2 = (factor.y >> 24u) | ((factor.x & 0xfu) << 8u);
  let y3 = (factor.x >> 4u) & 0xfffu;
  let y4 = ((factor.x >> 16u) & 0xfu) | 0x10u;
  let p0 = x0 * y0;
  let p1 = x0 * y1 + x1 * y0 + (p0 >> 12u);
  let p2 = x0 * y2 + x1 * y1 + (p1 >> 12u);
  let p3 = x0 * y3 + x1 * y2 + (p2 >> 12u);
  let p4 = x0 * y4 + x1 * y3 + (p3 >> 12u);
  var high = ((x1 * y4 + (p4 >> 12u)) << 12u) | (p4 & 0xfffu);
  var middle = ((p3 & 0xfffu) << 12u) | (p2 & 0xfffu);
  var low = ((p1 & 0xfffu) << 12u) | (p0 & 0xfffu);
  var exponent = x.exponent + i32(factor.x >> 20u) - 1075;
  if (high < 0x10000000u) {
    high = (high << 1u) | (middle >> 23u);
    middle = ((middle << 1u) & 0xffffffu) | (low >> 23u);
    low = (low << 1u) & 0xffffffu;
    exponent -= 1;
  }
  middle += u32(low > 0x800000u || (low == 0x800000u && (middle & 1u) == 1u));
  high += middle >> 24u;
  middle &= 0xffffffu;
  return nearest((high << 2u) | (middle >> 22u), (middle & 0x3fffffu) != 0u, exponent + 46);
}
fn quotient(a: u32, b: u32) -> u32 {
  if (b == 0u) { return 0x7f800000u; }
  if (a == 0u) { return 0u; }
  let x = parts(a);
  let y = parts(b);
  var q = 0u;
  var rest = x.mantissa;
  for (var i = 0u; i < 32u; i++) {
    q <<= 1u;
    if (i > 0u) { rest <<= 1u; }
    if (rest >= y.mantissa) { rest -= y.mantissa; q |= 1u; }
  }
  return nearest(q, rest != 0u, x.exponent - y.exponent - 31);
}
`;

/**
 * WGSL of the rule.
 *
 * - `struct ScaleRule` has the members {@link scaleRuleFields}.
 * - `struct ScaleState { scale: u32, growth: f32, tolerated: f32, steps: f32, overflows: f32, isCollapse: bool }` is a state:
 *   bits of the scale, the four trackers, and whether the scale should have backed off in the step before and could not.
 * - `fn nextScale(before: ScaleState, found: bool, isDecision: bool, shift: i32, rule: ScaleRule) -> ScaleState` gives the state after a
 *   step. In a step whose exponents were counted, `isDecision` is true and `shift` is the power of two from them.
 * - `fn quotient(a: u32, b: u32) -> u32` divides float32 bits, rounding once: `quotient(0x3f800000u, scale)` is 1 / scale.
 */
export const scaleRuleWgsl: string = `${arithmeticWgsl}
struct ScaleRule { ${scaleRuleFields.map(({ name, type }) => `${name}: ${type}`).join(", ")} }
struct ScaleState { scale: u32, growth: f32, tolerated: f32, steps: f32, overflows: f32, isCollapse: bool }
fn backedOff(scale: u32, rule: ScaleRule) -> u32 {
  let smaller = product(scale, vec2u(rule.backoffFactorHigh, rule.backoffFactorLow));
  if (rule.keepsAtFloor == 1u) { return select(smaller, scale, smaller <= rule.minScale); }
  return max(smaller, rule.minScale);
}
fn nextScale(before: ScaleState, found: bool, isDecision: bool, shift: i32, rule: ScaleRule) -> ScaleState {
  var after = before;
  after.isCollapse = false;
  if (rule.isDynamic == 0u) { return after; }
  if (found) {
    after.growth = f32(-rule.growthDelay);
    after.tolerated -= 1.0;
    after.steps += 1.0;
    after.overflows += 1.0;
    let share = quotient(bitcast<u32>(after.overflows), bitcast<u32>(after.steps));
    if ((rule.hysteresis > 1.0 && after.tolerated > 0.0) || share < rule.tolerance) { return after; }
    after.steps = 0.0;
    after.overflows = 0.0;
    after.scale = backedOff(before.scale, rule);
    after.isCollapse = after.scale == before.scale;
    return after;
  }
  after.growth += 1.0;
  let isDue = select(after.growth >= rule.growthInterval, after.growth == rule.growthInterval, rule.isExact == 1u);
  var changes = isDue;
  var factor = vec2u(rule.growthFactorHigh, rule.growthFactorLow);
  if (rule.targetUnderflow > 0u) {
    changes = isDecision && (isDue || shift < 0);
    factor = vec2u(u32(shift + 1023) << 20u, 0u);
  }
  if (changes || rule.refillsWhenClean == 1u) { after.tolerated = rule.hysteresis; }
  if (!changes) {
    after.steps += 1.0;
    return after;
  }
  after.growth = 0.0;
  after.steps = 0.0;
  let grown = product(before.scale, factor);
  if (grown < 0x7f800000u) { after.scale = min(grown, rule.maxScale); }
  if (factor.x < 0x3ff00000u) { after.scale = max(after.scale, rule.minScale); }
  return after;
}
`;

/**
 * WGSL of the decision by exponents: `fn underflowShift(rule: ScaleRule) -> i32` and `fn underflowShare(rule: ScaleRule) -> f32` over a
 * function `at_exponents(word: u32) -> u32` that the program supplies, of `EXPONENT_WORDS` words. Comes after {@link scaleRuleWgsl}.
 */
export const underflowWgsl: string = `
fn allowedUnderflow(total: u32, rule: ScaleRule) -> u32 {
  return rule.targetUnderflow * (total >> 16u) + ((rule.targetUnderflow * (total & 0xffffu)) >> 16u);
}
fn leastField(rule: ScaleRule) -> u32 { return select(${exponentRanges.float16.least}u, ${exponentRanges.bfloat16.least}u, rule.isBfloat16 == 1u); }
fn mostField(rule: ScaleRule) -> u32 { return select(${exponentRanges.float16.most}u, ${exponentRanges.bfloat16.most}u, rule.isBfloat16 == 1u); }
fn underflowShift(rule: ScaleRule) -> i32 {
  var total = 0u;
  var top = 0u;
  for (var field = 1u; field < 255u; field++) {
    let count = at_exponents(field);
    total += count;
    if (count > 0u) { top = field; }
  }
  let lost = at_exponents(256u);
  let stored = at_exponents(259u) - at_exponents(257u);
  if (total == 0u && stored == 0u) { return select(0, 1, at_exponents(0u) > 0u); }
  top = max(top, min(at_exponents(258u) >> 23u, 254u));
  let allowed = allowedUnderflow(total, rule);
  var field = 1u;
  var below = at_exponents(1u);
  while (field < 254u && below <= allowed) {
    field++;
    below += at_exponents(field);
  }
  let wanted = select(max(i32(leastField(rule)) - i32(field), 0), 32, lost > allowedUnderflow(stored, rule));
  let shift = min(wanted, i32(mostField(rule)) - i32(top));
  return clamp(shift, -32, 32);
}
fn underflowShare(rule: ScaleRule) -> f32 {
  var total = 0u;
  var lost = 0u;
  for (var field = 1u; field < 255u; field++) {
    let count = at_exponents(field);
    total += count;
    if (field < leastField(rule)) { lost += count; }
  }
  let stored = at_exponents(259u) - at_exponents(257u);
  return max(f32(lost) / f32(max(total, 1u)), f32(at_exponents(256u)) / f32(max(stored, 1u)));
}
`;

const scratch = new Uint32Array(1);
const scratchFloat = new Float32Array(scratch.buffer);

function bitsOf(value: number): number {
  scratchFloat[0] = value;
  return scratch[0] as number;
}

function floatOf(bits: number | undefined): number {
  scratch[0] = bits as number;
  return scratchFloat[0] as number;
}

const scratchDouble = new DataView(new ArrayBuffer(8));

function highWord(value: number): number {
  scratchDouble.setFloat64(0, value);
  return scratchDouble.getUint32(0);
}

function lowWord(value: number): number {
  scratchDouble.setFloat64(0, value);
  return scratchDouble.getUint32(4);
}

function doubleOf(high: number | undefined, low: number | undefined): number {
  scratchDouble.setUint32(0, high as number);
  scratchDouble.setUint32(4, low as number);
  return scratchDouble.getFloat64(0);
}
