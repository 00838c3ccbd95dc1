/**
 * The rule as WGSL, for whoever updates a scale on a GPU: bit for bit what `nextScaleState` gives, on every adapter. Strings
 * and numbers only; nothing here needs a GPU.
 */
import type { ScaleRule } from "./rule.js";
import { exponentRanges } from "./underflow.js";

/** Members of the WGSL struct `ScaleRule`, in order: four bytes each. Factors and scales are bits of float32. */
export const scaleRuleFields: readonly {
  readonly name: string;
  readonly type: "f32" | "i32" | "u32";
}[] = (
  [
    ["isDynamic", "u32"],
    ["growthFactor", "u32"],
    ["backoffFactor", "u32"],
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
    ["leastField", "u32"],
    ["mostField", "u32"],
  ] as const
).map(([name, type]) => ({ name, type }));

/** The numbers of the members, by name. */
export const scaleRuleValues = (rule: ScaleRule): Readonly<Record<string, number>> => ({
  isDynamic: Number(rule.dynamic),
  growthFactor: bitsOf(rule.growthFactor),
  backoffFactor: bitsOf(rule.backoffFactor),
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
  leastField: exponentRanges[rule.underflowFormat].least,
  mostField: exponentRanges[rule.underflowFormat].most,
});

/** The struct as it lies in a uniform buffer: 16 words. */
export function scaleRuleWords(rule: ScaleRule): Uint32Array<ArrayBuffer> {
  const values = scaleRuleValues(rule);
  const words = scaleRuleFields.map(({ name, type }) => {
    const value = values[name] as number;
    return type === "f32" ? bitsOf(value) : value;
  });
  return Uint32Array.from(words);
}

/** The rule that {@link scaleRuleValues} was made of, as far as it decides the next state: for references on the CPU. */
export const scaleRuleOfValues = (values: Readonly<Record<string, number>>): ScaleRule => ({
  initScale: 1,
  dynamic: values.isDynamic === 1,
  growthFactor: floatOf(values.growthFactor),
  backoffFactor: floatOf(values.backoffFactor),
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

// Scales pass through the subnormal numbers to 0, which GPUs may flush, and WGSL's division is not exact: so products and
// quotients are computed on bits, each rounded to nearest even once.
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
fn product(a: u32, b: u32) -> u32 {
  if (a == 0u || b == 0u) { return 0u; }
  let x = parts(a);
  let y = parts(b);
  let xh = x.mantissa >> 12u;
  let xl = x.mantissa & 0xfffu;
  let yh = y.mantissa >> 12u;
  let yl = y.mantissa & 0xfffu;
  let middle = xh * yl + xl * yh;
  let low = xl * yl + ((middle & 0xfffu) << 12u);
  let high = xh * yh + (middle >> 12u) + (low >> 24u);
  let rest = low & 0xffffffu;
  return nearest((high << 8u) | (rest >> 16u), (rest & 0xffffu) != 0u, x.exponent + y.exponent + 16);
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
 * - `fn nextScale(before: ScaleState, found: bool, isDecision: bool, shift: i32, rule: ScaleRule) -> ScaleState` gives the
 *   state after a step. In a step whose exponents were counted, `isDecision`, and `shift` is what they ask for.
 * - `fn quotient(a: u32, b: u32) -> u32` divides float32 bits, rounding once: `quotient(0x3f800000u, scale)` is 1 / scale.
 */
export const scaleRuleWgsl: string = `${arithmeticWgsl}
struct ScaleRule { ${scaleRuleFields.map(({ name, type }) => `${name}: ${type}`).join(", ")} }
struct ScaleState { scale: u32, growth: f32, tolerated: f32, steps: f32, overflows: f32, isCollapse: bool }
fn backedOff(scale: u32, rule: ScaleRule) -> u32 {
  let smaller = product(scale, rule.backoffFactor);
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
  var factor = rule.growthFactor;
  if (rule.targetUnderflow > 0u) {
    changes = isDecision && (isDue || shift < 0);
    factor = u32(shift + 127) << 23u;
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
  if (factor < 0x3f800000u) { after.scale = max(after.scale, rule.minScale); }
  return after;
}
`;

/**
 * WGSL of what exponents ask for: `fn underflowShift(rule: ScaleRule) -> i32` and `fn underflowShare(rule: ScaleRule) -> f32`
 * over a function `at_exponents(word: u32) -> u32` that the program supplies, of `EXPONENT_WORDS` words. Comes after {@link scaleRuleWgsl}.
 */
export const underflowWgsl: string = `
fn allowedUnderflow(total: u32, rule: ScaleRule) -> u32 {
  return rule.targetUnderflow * (total >> 16u) + ((rule.targetUnderflow * (total & 0xffffu)) >> 16u);
}
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
  let wanted = select(max(i32(rule.leastField) - i32(field), 0), 32, lost > allowedUnderflow(stored, rule));
  let shift = min(wanted, i32(rule.mostField) - i32(top));
  return clamp(shift, -32, 32);
}
fn underflowShare(rule: ScaleRule) -> f32 {
  var total = 0u;
  var lost = 0u;
  for (var field = 1u; field < 255u; field++) {
    let count = at_exponents(field);
    total += count;
    if (field < rule.leastField) { lost += count; }
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
